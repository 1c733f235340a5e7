"""Client side of signalling: connects to a machine through a cloud's SignalingService."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import trio
from grpclib.const import Cardinality
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc.api import messages
from rpc.peers.port import Engine, IceCandidate, IceServer, PeerChannel, PeerConnection, PeerOptions, PeerState
from rpc.peers.signals import candidate_fields, candidate_of, decode_description, encode_description, servers_of
from rpc.status import to_machine_error
from schema import ErrorKind, MachineError
from support import side_task

DATA: Final = ("data", 0)
NEGOTIATION: Final = ("negotiation", 1)
"""Labels and numbers of the channels that both ends open; the second one carries later session descriptions."""

RECOVERY: Final = 10.0  # seconds in which a connection without contact may recover, as in a change of networks

SERVICE: Final = "/proto.rpc.webrtc.v1.SignalingService/"
HOST: Final = "rpc-host"
"""Metadata key of signalling: the host name of the machine."""


@dataclass(slots=True)
class Dialled:
    """A connection to a machine. `data` carries calls, see `rpc.datachannel.client`."""

    peer: PeerConnection
    data: PeerChannel
    negotiation: PeerChannel
    servers: tuple[IceServer, ...]  # that the cloud offers
    local: list[IceCandidate] = field(default_factory=list)  # candidates that were sent
    remote: list[IceCandidate] = field(default_factory=list)  # candidates that were received


@asynccontextmanager
async def dialled(engine: Engine, signalling: Any, host: str, *, relay_only: bool = False) -> AsyncIterator[Dialled]:
    """Connect to the machine that `host` names; close the connection at the end, or when it is lost.

    `signalling` is a channel to the cloud, with credentials. Raises MachineError: that of the cloud or of the machine,
    or UNAVAILABLE if neither end reaches the other. Set a time limit with a cancel scope.
    """
    signals = _Signals(signalling, host)
    servers = await signals.servers()
    peer = engine.connect(PeerOptions(servers, relay_only=relay_only))
    try:
        connection = Dialled(peer, peer.channel(*DATA), peer.channel(*NEGOTIATION), servers)
        await _Attempt(connection, signals).run()
        async with side_task(partial(_close_when_lost, peer)):
            yield connection
    finally:
        peer.close()


async def until_lost(peer: PeerConnection, recovery: float = RECOVERY) -> None:
    """Wait until a connection has failed, is closed, or has had no contact for `recovery` seconds.

    Its channels may stay open: a peer that vanishes does not close them.
    """
    ended = (PeerState.FAILED, PeerState.CLOSED)
    try:
        while await peer.wait_state(PeerState.DISCONNECTED, *ended) not in ended:
            with trio.move_on_after(recovery) as waiting:
                await peer.wait_state(PeerState.CONNECTED, *ended)
            if waiting.cancelled_caught:
                return
    except trio.BrokenResourceError:
        return


async def _close_when_lost(peer: PeerConnection) -> None:
    await until_lost(peer)
    peer.close()


class _Signals:
    """Calls of the signalling service about one machine."""

    def __init__(self, channel: Any, host: str) -> None:
        self._channel = channel
        self._metadata = {HOST: host}

    def request(self, method: str, cardinality: Cardinality, request: Any, reply: Any) -> Any:
        """Return a call, which is a context manager."""
        return self._channel.request(SERVICE + method, cardinality, request, reply, metadata=self._metadata)

    async def unary(self, method: str, request: Any, reply: Any) -> Any:
        """Make a call with one reply. Raises MachineError."""
        try:
            async with self.request(method, Cardinality.UNARY_UNARY, type(request), reply) as stream:
                await stream.send_message(request, end=True)
                return await stream.recv_message()
        except (GRPCError, StreamTerminatedError) as error:
            raise _failure(error) from None

    async def servers(self) -> tuple[IceServer, ...]:
        """Return the servers that the cloud offers for this machine."""
        wire = messages.signaling()
        reply = await self.unary(
            "OptionalWebRTCConfig", wire.OptionalWebRTCConfigRequest(), wire.OptionalWebRTCConfigResponse
        )
        return servers_of(reply.config)

    async def update(self, uuid: str, **content: Any) -> None:
        """Send a candidate, or that there are no more."""
        wire = messages.signaling()
        await self.unary("CallUpdate", wire.CallUpdateRequest(uuid=uuid, **content), wire.CallUpdateResponse)


class _Attempt:
    """Exchange of descriptions and candidates until the channel for calls is open."""

    def __init__(self, connection: Dialled, signals: _Signals) -> None:
        self._connection = connection
        self._signals = signals
        self._scope = trio.CancelScope()
        self._error: MachineError | None = None
        self._open = False

    async def run(self) -> None:
        """Connect. Raises MachineError."""
        offer = encode_description(await self._connection.peer.offer())
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._wait_until_open)
                nursery.start_soon(self._wait_until_failed)
                nursery.start_soon(self._exchange, offer, nursery)
        if self._error is not None and not self._open:
            raise self._error

    def _fail(self, error: MachineError) -> None:
        self._error = self._error or error
        self._scope.cancel()

    async def _wait_until_open(self) -> None:
        try:
            await self._connection.data.wait_open()
        except trio.BrokenResourceError:
            self._fail(_not_reached())
        else:
            self._open = True
            self._scope.cancel()

    async def _wait_until_failed(self) -> None:
        try:
            await self._connection.peer.wait_state(PeerState.FAILED)
        except trio.BrokenResourceError:
            return
        self._fail(_not_reached())

    async def _exchange(self, offer: str, nursery: trio.Nursery) -> None:
        wire = messages.signaling()
        try:
            async with self._signals.request(
                "Call", Cardinality.UNARY_STREAM, wire.CallRequest, wire.CallResponse
            ) as stream:
                await stream.send_message(wire.CallRequest(sdp=offer), end=True)
                while (reply := await stream.recv_message()) is not None:
                    await self._take(reply, nursery)
        except (GRPCError, StreamTerminatedError) as error:
            self._fail(_failure(error))
        except MachineError as error:
            self._fail(error)

    async def _take(self, reply: Any, nursery: trio.Nursery) -> None:
        peer = self._connection.peer
        if reply.HasField("init"):
            await peer.accept(decode_description(reply.init.sdp))
            nursery.start_soon(self._send_candidates, reply.uuid)
        elif reply.HasField("update"):
            candidate = candidate_of(reply.update.candidate)
            self._connection.remote.append(candidate)
            await peer.add_candidate(candidate)

    async def _send_candidates(self, uuid: str) -> None:
        try:
            while (candidate := await self._connection.peer.next_candidate()) is not None:
                self._connection.local.append(candidate)
                await self._signals.update(uuid, candidate=candidate_fields(candidate))
            await self._signals.update(uuid, done=True)
        except MachineError as error:
            self._fail(error)


def _failure(error: GRPCError | StreamTerminatedError) -> MachineError:
    if isinstance(error, GRPCError):
        return to_machine_error(error)
    return MachineError(f"the connection to the cloud was lost: {error}", kind=ErrorKind.UNAVAILABLE)


def _not_reached() -> MachineError:
    return MachineError(
        "neither end reaches the other by WebRTC",
        kind=ErrorKind.UNAVAILABLE,
        remedy="allow UDP to and from the internet, or give the cloud a TURN server (--ice-server)",
    )
