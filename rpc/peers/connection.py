"""Parts of a peer connection that all engines share: state, local candidates, channels, checks of remote input."""

from __future__ import annotations

from collections import deque

import trio

from rpc.peers.channel import MessageChannel
from rpc.peers.intake import Intake
from rpc.peers.port import IceCandidate, PeerState
from schema import ErrorKind, MachineError


class _Waiter:
    """A call that waits for one of `states`; `reached` is the state that ended it."""

    __slots__ = ("event", "reached", "states")

    def __init__(self, states: tuple[PeerState, ...]) -> None:
        self.states = states
        self.reached = PeerState.CLOSED
        self.event = trio.Event()


class ConnectionBase:
    """State, local candidates and channels of one connection. An engine reports to `entered` and `gathered`."""

    def __init__(self) -> None:
        self._intake = Intake()
        self._channels: list[MessageChannel] = []
        self._state = PeerState.NEW
        self._waiters: set[_Waiter] = set()
        self._local: deque[IceCandidate] = deque()
        self._all_gathered = False
        self._gathering = trio.lowlevel.ParkingLot()

    @property
    def state(self) -> PeerState:
        """Present state."""
        return self._state

    async def wait_state(self, *states: PeerState) -> PeerState:
        """Wait until the connection enters one of these states, and return it, see `port.PeerConnection`."""
        await trio.lowlevel.checkpoint()
        if self._state in states:
            return self._state
        if self._state is not PeerState.CLOSED:
            waiter = _Waiter(states)
            self._waiters.add(waiter)
            try:
                await waiter.event.wait()
            finally:
                self._waiters.discard(waiter)
            if waiter.reached in states:
                return waiter.reached
        raise trio.BrokenResourceError("the peer connection is closed")

    async def next_candidate(self) -> IceCandidate | None:
        """Return the next local candidate, or None after the last one. At most one task at a time may wait."""
        await trio.lowlevel.checkpoint()
        while not self._local:
            if self._all_gathered or self._state is PeerState.CLOSED:
                return None
            await self._gathering.park()
        return self._local.popleft()

    def entered(self, state: PeerState) -> None:
        """Note a new state. The state CLOSED is final: it ends the channels."""
        if self._state in (state, PeerState.CLOSED):
            return
        self._state = state
        for waiter in list(self._waiters):
            if state in waiter.states or state is PeerState.CLOSED:
                self._waiters.discard(waiter)
                waiter.reached = state
                waiter.event.set()
        if state is PeerState.CLOSED:
            self._gathering.unpark_all()
            for channel in self._channels:
                channel.ended()

    def gathered(self, candidate: IceCandidate | None) -> None:
        """Add a local candidate; None ends them."""
        if candidate is None:
            self._all_gathered = True
        else:
            self._local.append(candidate)
        self._gathering.unpark_all()

    def _check_open(self) -> None:
        if self._state is PeerState.CLOSED:
            raise closed()


def closed() -> MachineError:
    """Create the error of a call to a connection that is closed."""
    return MachineError("the peer connection is closed", kind=ErrorKind.UNAVAILABLE, remedy="connect again")


def refused(operation: str) -> MachineError:
    """Create the error of an offer or answer that is not possible in the present state."""
    return MachineError(
        f"the peer connection cannot make an {operation} now",
        kind=ErrorKind.PRECONDITION,
        remedy="accept an offer before an answer is made, and close the connection after an error",
    )
