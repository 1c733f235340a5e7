"""Sessions: if a client that commands actuators is silent for too long, they are stopped.

Each session has its own deadline, which each heartbeat or command postpones; there is no periodic scan. When the
deadline passes, the session ends and the resources that the client commanded last are stopped.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

import trio

from engine.views.status import SessionStatus
from rpc import Farewell, silence
from schema import ErrorKind, MachineError

SESSION_KEY: Final = "viam-sid"  # metadata key of the wire, in requests
WINDOW_KEY: Final = "machine-heartbeat-window"
"""Metadata key of StartSession: seconds, for a client that wants its actuators stopped sooner than configured."""
MONITORED_KEY: Final = "viam-smrn"  # metadata key of the wire, in replies: the resource that the session now monitors
EXPIRED: Final = "SESSION_EXPIRED"  # clients match this text
DEFAULT_WINDOW: Final = 2.0  # seconds; reference: network.sessions.heartbeat_window
MIN_WINDOW: Final = 0.03
MAX_WINDOW: Final = 60.0
MAX_SESSIONS: Final = 1024

Stop = Callable[["Session", tuple[str, ...]], Awaitable[None]]
"""Stops the resources that the client of an expired session commanded; must not raise."""


class Session:
    """A client that sends heartbeats."""

    __slots__ = ("ended", "farewell", "heard", "held", "id", "owner", "peer", "scope", "window")

    def __init__(self, owner: str, peer: str, window: float, *, held: bool = False) -> None:
        self.held = held  # by a person, who lets go: see `Sessions.interrupt`
        self.scope = trio.CancelScope()  # of the task that waits for silence
        self.id = str(uuid.uuid4())
        self.owner = owner
        self.peer = peer
        self.window = window
        self.heard = trio.current_time()
        self.ended = False
        self.farewell: Farewell | None = None  # of the connection that the client used last

    @property
    def alive(self) -> bool:
        """Whether the session has not ended; it does not end before input that arrived in time has been read."""
        return not self.ended

    @property
    def deadline(self) -> float:
        """Time (Trio's clock) at which the session ends without a further heartbeat or command."""
        return self.heard + self.window

    @property
    def closed(self) -> bool:
        """Whether the client has closed its connection, so that its silence is expected."""
        return self.farewell is not None and self.farewell.said

    def touch(self, farewell: Farewell | None = None) -> None:
        """Restart the window: the client was heard, on the connection of `farewell`."""
        self.heard = trio.current_time()
        self.farewell = farewell or self.farewell


class Sessions:
    """All sessions of a machine; usable while `run` runs."""

    def __init__(self, stop: Stop, window: float = DEFAULT_WINDOW) -> None:
        self.window = window  # seconds, for sessions started or resumed from now on
        self._stop = stop
        self._sessions: dict[str, Session] = {}
        self._holders: dict[str, Session] = {}  # resource -> session that commanded it last
        self._followed: dict[str, Farewell] = {}  # resource -> connection without a session that commanded it last
        self._watched: WeakKeyDictionary[Farewell, set[str]] = WeakKeyDictionary()
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[Sessions]) -> None:
        """Run until cancelled; then all sessions are dropped without stopping resources."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                task_status.started(self)
                await trio.sleep_forever()
        finally:
            self._nursery = None
            self._sessions.clear()
            self._holders.clear()
            self._followed.clear()

    def start(self, *, resume: str = "", owner: str = "", peer: str = "", window: float = math.inf) -> Session:
        """Start a session, or resume the session `resume` if it is alive and belongs to `owner`.

        `window` is the longest silence that the client wants, in seconds; it shortens the configured one, not below
        MIN_WINDOW, and says that a person holds what moves.

        Raises MachineError: EXHAUSTED at MAX_SESSIONS, UNAVAILABLE while the server starts or stops.
        """
        held, window = window < math.inf, min(self.window, max(window, MIN_WINDOW))
        session = self._sessions.get(resume)
        if session is not None and session.owner == owner and session.alive:
            session.window, session.held = window, held
            session.touch()
            return session
        if self._nursery is None:
            raise MachineError("sessions are not available now", kind=ErrorKind.UNAVAILABLE, remedy="try again")
        if len(self._sessions) >= MAX_SESSIONS:
            raise MachineError(
                f"{MAX_SESSIONS} sessions are open",
                kind=ErrorKind.EXHAUSTED,
                remedy="close clients that are not needed, or try again when their sessions have expired",
            )
        session = Session(owner, peer, window, held=held)
        self._sessions[session.id] = session
        self._nursery.start_soon(self._watch, session, name=f"session {session.id}")
        return session

    def find(self, sid: str, owner: str = "") -> Session:
        """Return the live session `sid` of `owner`; raises MachineError (INVALID, message EXPIRED) if there is none."""
        session = self._sessions.get(sid)
        if session is None or session.owner != owner or not session.alive:
            raise MachineError(EXPIRED, kind=ErrorKind.INVALID)
        return session

    def interrupt(self) -> None:
        """End the sessions in which a person holds something. Their actuators are not stopped here.

        Their next command or heartbeat is refused, so that a hand that still moves a joystick does not undo a stop
        by another client.
        """
        for session in self._sessions.values():
            if session.held:
                session.ended = True
                session.scope.cancel()

    def command(self, resource: str, session: Session | None) -> None:
        """Record that a monitored method of `resource` was called in `session`, or without one."""
        if session is None:
            self._holders.pop(resource, None)
        else:
            session.touch()
            self._holders[resource] = session

    def follow(self, resource: str, farewell: Farewell) -> None:
        """Stop `resource` when the connection of `farewell` is closed, unless another client has commanded it since.

        For clients without sessions. Silence does not end what they do.
        """
        self._followed[resource] = farewell
        watched = self._watched.setdefault(farewell, set())
        if resource not in watched:
            watched.add(resource)
            farewell.on_said.append(partial(self._left, resource, farewell))

    def _left(self, resource: str, farewell: Farewell) -> None:
        if self._followed.get(resource) is farewell and resource not in self._holders and self._nursery is not None:
            del self._followed[resource]
            session = Session("", "", self.window)
            session.farewell = farewell
            self._nursery.start_soon(self._stop, session, (resource,), name=f"stop {resource}")

    def holder(self, resource: str) -> Session | None:
        """Return the live session that commanded `resource` last, if any."""
        return self._holders.get(resource)

    def forget(self, resources: Iterable[str]) -> None:
        """Release resources that no longer exist."""
        for resource in resources:
            self._holders.pop(resource, None)
            self._followed.pop(resource, None)

    def commanded_by(self, session: Session) -> tuple[str, ...]:
        """Return the resources that the session commands, sorted by name."""
        return tuple(sorted(resource for resource, holder in self._holders.items() if holder is session))

    def __len__(self) -> int:
        return len(self._sessions)

    def status(self) -> tuple[SessionStatus, ...]:
        """Return the status of all sessions, oldest first."""
        now = trio.current_time()
        return tuple(
            SessionStatus(
                session.id, session.owner, session.peer, self.commanded_by(session), max(0.0, session.deadline - now)
            )
            for session in self._sessions.values()
        )

    async def _watch(self, session: Session) -> None:
        with session.scope:
            await silence(lambda: session.heard, lambda: session.window)
        session.ended = True
        # Not reached in a shutdown, which cancels this task and stops everything anyway.
        resources = self.commanded_by(session)
        del self._sessions[session.id]
        self.forget(resources)
        if resources and not session.scope.cancelled_caught:
            await self._stop(session, resources)


def window_of(text: str | bytes | None) -> float:
    """Return the window that a client asks for in WINDOW_KEY, in seconds; infinite without. INVALID if no number."""
    if text is None:
        return math.inf
    try:
        window = float(text)
    except ValueError:
        window = math.nan
    if not window > 0:  # also for nan
        raise MachineError(
            f"{WINDOW_KEY} is {str(text)[:40]!r}", kind=ErrorKind.INVALID, remedy="write seconds, such as 1.0"
        )
    return window
