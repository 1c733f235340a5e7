"""Sessions: a client that commands something must stay in touch, or what it commanded is stopped.

Each session has a deadline of its own that every sign of life moves; nothing scans. When it passes, the session is gone
and whatever the client last commanded is stopped.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import trio

from rpc.carrier import Farewell
from rpc.silence import silence
from runtime.status import SessionStatus
from schema.errors import ErrorKind, MachineError

SESSION_KEY: Final = "viam-sid"  # metadata key of the wire, in requests
MONITORED_KEY: Final = "viam-smrn"  # metadata key of the wire, in replies: what the call put under the session's watch
EXPIRED: Final = "SESSION_EXPIRED"  # clients match this text
DEFAULT_WINDOW: Final = 2.0  # seconds; reference: network.sessions.heartbeat_window
MIN_WINDOW: Final = 0.03
MAX_WINDOW: Final = 60.0
MAX_SESSIONS: Final = 1024

Stop = Callable[["Session", tuple[str, ...]], Awaitable[None]]
"""Stops the named resources that a client commanded whose session has expired; must not raise."""


class Session:
    """One client that promised to stay in touch."""

    __slots__ = ("ended", "farewell", "heard", "id", "owner", "peer", "window")

    def __init__(self, owner: str, peer: str, window: float) -> None:
        self.id = str(uuid.uuid4())
        self.owner = owner
        self.peer = peer
        self.window = window
        self.heard = trio.current_time()
        self.ended = False
        self.farewell: Farewell | None = None  # of the connection that it was heard on last

    @property
    def alive(self) -> bool:
        """False from the moment it has ended: not before input that came in time was read."""
        return not self.ended

    @property
    def deadline(self) -> float:
        """When it ends unless the client is heard again; Trio's clock."""
        return self.heard + self.window

    @property
    def closed(self) -> bool:
        """Whether the client has closed its connection, so that its silence is no surprise."""
        return self.farewell is not None and self.farewell.said

    def touch(self, farewell: Farewell | None = None) -> None:
        """The client lives, on a connection with this farewell: a whole window from now."""
        self.heard = trio.current_time()
        self.farewell = farewell or self.farewell


class Sessions:
    """All sessions of one machine; alive while `run` runs."""

    def __init__(self, stop: Stop, window: float = DEFAULT_WINDOW) -> None:
        self.window = window  # seconds, for sessions started or resumed from now on
        self._stop = stop
        self._sessions: dict[str, Session] = {}
        self._holders: dict[str, Session] = {}  # resource -> who commanded it last
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[Sessions]) -> None:
        """Serve until cancelled; then no session is left, and nothing more is stopped on their account."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                task_status.started(self)
                await trio.sleep_forever()
        finally:
            self._nursery = None
            self._sessions.clear()
            self._holders.clear()

    def start(self, *, resume: str = "", owner: str = "", peer: str = "") -> Session:
        """Begin a session, or go on with `resume` if that still lives and is the owner's.

        Raises MachineError: EXHAUSTED at MAX_SESSIONS, UNAVAILABLE while the server starts or stops.
        """
        session = self._sessions.get(resume)
        if session is not None and session.owner == owner and session.alive:
            session.window = self.window
            session.touch()
            return session
        if self._nursery is None:
            raise MachineError("sessions are not served now", kind=ErrorKind.UNAVAILABLE, remedy="try again")
        if len(self._sessions) >= MAX_SESSIONS:
            raise MachineError(
                f"{MAX_SESSIONS} sessions are open",
                kind=ErrorKind.EXHAUSTED,
                remedy="close clients that are not needed, or try again when their sessions have expired",
            )
        session = Session(owner, peer, self.window)
        self._sessions[session.id] = session
        self._nursery.start_soon(self._watch, session, name=f"session {session.id}")
        return session

    def find(self, sid: str, owner: str = "") -> Session:
        """The living session `sid` of `owner`; raises MachineError (INVALID, EXPIRED) otherwise."""
        session = self._sessions.get(sid)
        if session is None or session.owner != owner or not session.alive:
            raise MachineError(EXPIRED, kind=ErrorKind.INVALID)
        return session

    def command(self, resource: str, session: Session | None) -> None:
        """A monitored method was called on `resource`: bind it to the caller's session, or to none."""
        if session is None:
            self._holders.pop(resource, None)
        else:
            session.touch()
            self._holders[resource] = session

    def holder(self, resource: str) -> Session | None:
        """The session that commanded `resource` last, if it lives."""
        return self._holders.get(resource)

    def forget(self, resources: Iterable[str]) -> None:
        """These resources are gone: nothing is left to stop."""
        for resource in resources:
            self._holders.pop(resource, None)

    def held(self, session: Session) -> tuple[str, ...]:
        """What the session commands, in order of name."""
        return tuple(sorted(resource for resource, holder in self._holders.items() if holder is session))

    def __len__(self) -> int:
        return len(self._sessions)

    def status(self) -> tuple[SessionStatus, ...]:
        """Every session, oldest first."""
        now = trio.current_time()
        return tuple(
            SessionStatus(one.id, one.owner, one.peer, self.held(one), max(0.0, one.deadline - now))
            for one in self._sessions.values()
        )

    async def _watch(self, session: Session) -> None:
        await silence(lambda: session.heard, lambda: session.window)
        session.ended = True
        # Only its own deadline gets here: shutting down is a cancellation from outside and stops everything anyway.
        resources = self.held(session)
        del self._sessions[session.id]
        self.forget(resources)
        if resources:
            await self._stop(session, resources)
