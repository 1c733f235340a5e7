"""Tasks by name that are started and stopped at any time, and that are repeated after a failure."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import trio

from nursery_graph import Restart, back_off
from schema import MachineError

RESTART: Final = Restart(first_delay=1.0, max_delay=60.0)
HEALTHY: Final = 60.0
"""Seconds after which a failure counts as the first one again."""
STOP_LIMIT: Final = 10.0
"""Seconds for the end of a task; its cleanup closes sockets and ends child processes."""

_log = structlog.get_logger("netmgr")


class _Task:
    __slots__ = ("ended", "scope")

    def __init__(self) -> None:
        self.scope, self.ended = trio.CancelScope(), trio.Event()


class Tasks:
    """Tasks in a nursery. Each runs until it is stopped; one that fails with MachineError or OSError starts again."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._tasks: dict[str, _Task] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    def start(self, name: str, function: Callable[[], Awaitable[object]]) -> None:
        """Start a task, unless one with this name runs."""
        if name not in self._tasks:
            task = self._tasks[name] = _Task()
            self._nursery.start_soon(self._run, name, task, function)

    async def stop(self, name: str) -> None:
        """Cancel a task and wait for its end. UNAVAILABLE if it does not end within STOP_LIMIT seconds."""
        task = self._tasks.get(name)
        if task is None:
            return
        task.scope.cancel()
        with trio.move_on_after(STOP_LIMIT):
            await task.ended.wait()
            return
        raise MachineError(f"the task {name} does not end")

    async def _run(self, name: str, task: _Task, function: Callable[[], Awaitable[object]]) -> None:
        failures, reason = 0, ""
        try:
            with task.scope:
                while True:
                    begin = trio.current_time()
                    try:
                        await function()
                        return
                    except (MachineError, OSError) as error:
                        failures = 1 if trio.current_time() - begin > HEALTHY else failures + 1
                        if str(error) != reason:
                            reason = str(error)
                            _log.warning("a part of network management has failed", part=name, reason=reason)
                    await trio.sleep(back_off(RESTART, failures, random.random()))
        finally:
            self._tasks.pop(name, None)
            task.ended.set()
