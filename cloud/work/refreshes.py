"""Refreshes of thousands of machines that one change concerns, a few at a time, so that calls need not wait for all."""

from __future__ import annotations

from types import TracebackType
from typing import Final

import trio

from cloud.work.slots import WaitingLine

AT_ONCE: Final = 2
"""Refreshes that run at the same time. A call of the same organization waits for as many at most; more are not faster,
because each computes in Python most of its time."""


class Refreshes:
    """Grants refreshes in the order in which they were asked for; organizations take turns."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._free = at_once
        self._line: WaitingLine[Refresh] = WaitingLine()

    def of(self, organization: str) -> Refresh:
        """Return the refresh of one machine of an organization, for use as a context."""
        return Refresh(self, organization)

    def put(self, refresh: Refresh) -> None:
        """Add a refresh that waits. It is granted at once if one is free."""
        self._line.put(refresh.organization, refresh)
        self.grant()

    def give_back(self) -> None:
        """Note that a refresh has ended, and grant the next one."""
        self._free += 1
        self.grant()

    def grant(self) -> None:
        """Grant as many waiting refreshes as may run."""
        while self._free and (entry := self._line.take()) is not None:
            if entry[1].grant():
                self._free -= 1


class Refresh:
    """What one machine is sent, to be read again whenever it may have changed.

    Asking is cheap: no task wakes before it may run. Asking again before it runs has no effect; asking while it runs
    lets it run once more. A machine that disconnects leaves the context, and with it its place.
    """

    __slots__ = ("_again", "_closed", "_granted", "_refreshes", "_running", "_waiting", "organization")

    def __init__(self, refreshes: Refreshes, organization: str) -> None:
        self.organization: Final = organization
        self._refreshes = refreshes
        self._granted = trio.Event()
        self._waiting = self._running = self._again = self._closed = False

    def __enter__(self) -> Refresh:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed = True
        if self._running:
            self._running = False
            self._refreshes.give_back()

    def ask(self) -> None:
        """Ask for a refresh. Must be called in the event loop's thread."""
        if self._running:
            self._again = True
        elif not self._waiting:
            self._waiting = True
            self._refreshes.put(self)

    def grant(self) -> bool:
        """Let `begin` return; False if the machine has disconnected meanwhile."""
        self._waiting = False
        if self._closed:
            return False
        self._running = True
        self._granted.set()
        return True

    async def begin(self) -> None:
        """Wait until a refresh was asked for and may run; call `end` when what it needs was read."""
        await self._granted.wait()

    def end(self) -> None:
        """Let the next refresh run."""
        self._running, self._granted = False, trio.Event()
        if self._again:
            self._again = False
            self.ask()
        self._refreshes.give_back()
