"""Sessions: if a client that moves something is silent for too long, what it moved is stopped. Pure."""

from micro.wire.faults import EXHAUSTED, INVALID, CallFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

EXPIRED = "SESSION_EXPIRED"  # clients match this text
WINDOW_MS = 2000
MIN_WINDOW_MS = 30
MAX_WINDOW_MS = 60000
MAX_SESSIONS = 8


class Session:
    """A client that sends heartbeats."""

    def __init__(self, sid: str, owner: str, window: int, now: int) -> None:
        self.sid = sid
        self.owner = owner
        self.window = window
        self.deadline = now + window

    def touch(self, now: int) -> None:
        """Restart the window."""
        self.deadline = now + self.window


class Sessions:
    """All sessions, and which of them moved each resource last."""

    def __init__(self, random: "Callable[[int], bytes]") -> None:
        self.window = WINDOW_MS
        self._random = random
        self._sessions: dict[str, Session] = {}
        self._holders: dict[tuple[str, str], Session] = {}

    def start(self, resume: str, owner: str, wish: bytes, now: int) -> Session:
        """Start or resume a session; `wish` is the shorter window that a client wants, in seconds, or empty."""
        window = self.window
        if wish:
            try:
                window = min(window, max(MIN_WINDOW_MS, int(float(str(wish, "utf-8")) * 1000)))
            except (ValueError, OverflowError):
                raise CallFailure(INVALID, "machine-heartbeat-window is not a number of seconds") from None
        session = self._sessions.get(resume)
        if session is None or session.owner != owner:
            if len(self._sessions) >= MAX_SESSIONS:
                raise CallFailure(EXHAUSTED, f"{MAX_SESSIONS} sessions are open: try again when they have expired")
            session = Session(self._random(16).hex(), owner, window, now)
            self._sessions[session.sid] = session
        session.window = window
        session.touch(now)
        return session

    def find(self, sid: str, owner: str) -> Session:
        """Return a live session; INVALID_ARGUMENT with EXPIRED if there is none."""
        session = self._sessions.get(sid)
        if session is None or session.owner != owner:
            raise CallFailure(INVALID, EXPIRED)
        return session

    def moved(self, key: "tuple[str, str]", session: "Session | None", now: int) -> None:
        """Record that a resource was moved in a session, or without one."""
        if session is None:
            self._holders.pop(key, None)
        else:
            session.touch(now)
            self._holders[key] = session

    def forget(self, key: "tuple[str, str]") -> None:
        """Release a resource that no longer exists."""
        self._holders.pop(key, None)

    def expire(self, now: int) -> "list[tuple[str, str]]":
        """End the sessions that were silent for too long, and return what has to be stopped."""
        stop = []
        for session in list(self._sessions.values()):
            if now >= session.deadline:
                del self._sessions[session.sid]
                for key in [key for key in self._holders if self._holders[key] is session]:
                    del self._holders[key]
                    stop.append(key)
        return stop
