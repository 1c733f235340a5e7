"""Watchdogs that end a module which does not answer or exceeds its limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from rpc import was_suspended
from runtime.parts.modules.client import ModuleClient
from runtime.parts.modules.limits import ProcessUsage, exceeded
from schema import ErrorKind, MachineError
from schema.document import Module

LONGEST_PAUSE: Final = 10.0  # seconds between an answer and the next probe
MEASURE_INTERVAL: Final = 1.0  # seconds between two measurements of its usage; the kernel has no event for it


async def watch_answers(client: ModuleClient, module: Module, build_limit: float) -> None:
    """Probe the module repeatedly. Raises MachineError after `module.watchdog` seconds without an answer.

    While the module builds or validates resources, the limit is `build_limit` seconds longer, because a constructor
    may block the whole process. Returns immediately if the module has no watchdog.
    """
    limit = module.watchdog
    if not limit:
        return
    answered = trio.current_time()
    while True:
        built, due = client.built, trio.current_time() + limit
        with trio.move_on_after(limit) as scope:
            await client.probe()
        silent = trio.current_time() - answered
        if not scope.cancelled_caught:
            await trio.sleep(min(LONGEST_PAUSE, limit / 3))
            answered = trio.current_time()
        elif was_suspended(due, limit):
            answered = trio.current_time()  # this process was suspended: the answer may have arrived, unread
        elif (client.building, client.built) == (0, built) or silent >= limit + build_limit:
            raise MachineError(
                f"the module {module.name!r} has not answered for {silent:.0f} s",
                kind=ErrorKind.UNAVAILABLE,
                remedy="it is restarted; if its calls may block it for that long, raise `watchdog` of the module",
            )


async def watch_usage(usage: Callable[[], Awaitable[ProcessUsage]], module: Module) -> None:
    """Measure the usage of the module periodically. Raises MachineError when it exceeds its limits.

    Returns immediately if the module limits neither memory nor processes.
    """
    if not (module.limits.memory_mb or module.limits.processes):
        return
    while True:
        reason = exceeded(module.limits, await usage())
        if reason:
            raise MachineError(
                f"the module {module.name!r} was stopped: {reason}",
                kind=ErrorKind.EXHAUSTED,
                remedy="it is restarted; raise the limit if it needs more",
            )
        await trio.sleep(MEASURE_INTERVAL)
