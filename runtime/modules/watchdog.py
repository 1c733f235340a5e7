"""What ends a module that goes on without working: no answer, or more than it may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from rpc.silence import stood_still
from runtime.modules.client import ModuleClient
from runtime.modules.limits import Usage, exceeded
from schema.errors import ErrorKind, MachineError
from schema.modules import Module

LONGEST_PAUSE: Final = 10.0  # seconds between an answer and the next question
LOOK_EVERY: Final = 1.0  # seconds between two looks at what it uses; the kernel has no event for that


async def watch_answers(client: ModuleClient, module: Module, build_limit: float) -> None:
    """Ask a cheap call again and again; MachineError once none was answered for the module's `watchdog`.

    While the module builds or validates resources it has `build_limit` more: a constructor may keep a whole process
    busy.
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
        elif stood_still(due, limit):
            answered = trio.current_time()  # this process did not run: its answer may be here, unread
        elif (client.building, client.built) == (0, built) or silent >= limit + build_limit:
            raise MachineError(
                f"the module {module.name!r} has answered nothing for {silent:.0f} s",
                kind=ErrorKind.UNAVAILABLE,
                remedy="it is started again; if its calls may block it for so long, raise watchdog of the module",
            )


async def watch_usage(usage: Callable[[], Usage], module: Module) -> None:
    """Look at what the module uses; MachineError once it exceeds its limits."""
    if not (module.limits.memory_mb or module.limits.processes):
        return
    while True:
        reason = exceeded(module.limits, usage())
        if reason:
            raise MachineError(
                f"the module {module.name!r} is ended: {reason}",
                kind=ErrorKind.EXHAUSTED,
                remedy="it is started again; raise the limit if it needs more",
            )
        await trio.sleep(LOOK_EVERY)
