"""Ctrl-C for commands that run on Trio."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

T = TypeVar("T")


def run_until_interrupted(main: Callable[[], Awaitable[T]]) -> T:
    """Run `main` on Trio, and return its result.

    Ctrl-C cancels it, and raises KeyboardInterrupt when it has ended; a second Ctrl-C interrupts it anywhere. Python
    raises KeyboardInterrupt between any two instructions, also in those of Trio, which then fails with an internal
    error: so ended about 1 of 500 interrupted commands, with a traceback.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored in the background of a script
        return trio.run(main)
    results: list[T] = []
    trio.run(_interruptible, main, results)
    if not results:
        raise KeyboardInterrupt
    return results[0]


async def _interruptible(main: Callable[[], Awaitable[T]], results: list[T]) -> None:
    """Append what `main` returns, or raise what it raises, without a group around it; nothing if interrupted."""
    failure: BaseException | None = None
    interrupted = False

    async def wait(task_status: trio.TaskStatus[None]) -> None:
        nonlocal interrupted
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            await anext(signals)
        interrupted = True
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        await nursery.start(wait)
        try:
            results.append(await main())
        except (Exception, SystemExit) as error:
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None and not interrupted:  # such as that of a call which was cut off
        raise failure
