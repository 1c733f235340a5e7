"""Tells systemd that the agent makes progress, as long as all of its tasks do.

A blocked event loop sends nothing, and a task that hangs stops the messages too: systemd then kills and restarts the
agent, and machine-server runs on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog
import trio

from support import ServiceManager

_BEATS: Final = 3  # messages in each period of the watchdog
_log = structlog.get_logger("agent.watchdog")


class TaskProgress:
    """The progress of one task: it calls `made` at least every `limit` seconds, or waits for an event in `waiting`."""

    def __init__(self, name: str, limit: float) -> None:
        self.name, self.limit = name, limit
        self._last = trio.current_time()
        self._waiting = 0

    def made(self) -> None:
        """Report progress."""
        self._last = trio.current_time()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait for an event in this block, for any time. Leaving it is progress."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            self.made()

    def is_late(self) -> bool:
        """Return whether the task has made no progress within its limit."""
        return not self._waiting and trio.current_time() - self._last > self.limit


class Watchdog:
    """Sends WATCHDOG=1 while no registered task is late."""

    def __init__(self, manager: ServiceManager) -> None:
        self._manager = manager
        self._tasks: list[TaskProgress] = []

    @contextmanager
    def task(self, name: str, limit: float) -> Iterator[TaskProgress]:
        """Watch a task while the block is open. `limit` is seconds, and its own: longer than its longest operation."""
        progress = TaskProgress(name, limit)
        self._tasks.append(progress)
        try:
            yield progress
        finally:
            self._tasks.remove(progress)

    async def run(self) -> None:
        """Send messages until cancelled; return at once if systemd does not expect any."""
        reported: list[str] = []
        while self._manager.watchdog > 0:
            late = [task.name for task in self._tasks if task.is_late()]
            if not late:
                await self._manager.send(WATCHDOG="1")
            elif late != reported:
                _log.error("tasks make no progress: systemd will restart the agent", tasks=late)
            reported = late
            await trio.sleep(self._manager.watchdog / _BEATS)
