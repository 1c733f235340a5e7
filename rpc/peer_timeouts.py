"""Peer timeouts that tolerate a stopped or starved process.

A process that was stopped, or that other processes kept from running, resumes with expired deadlines and unread input.
An expired deadline is therefore checked only after pending input was read, and restarted if this process noticed it
much too late. Trio's clock does not follow changes of the computer's date.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

_PASSES: Final = 16  # scheduler passes: a socket is read in the first, its call runs a few passes later
_FORGIVEN: Final = 3  # consecutive extensions, so that a process that is always late still times out


T = TypeVar("T")


def was_suspended(due: float, window: float) -> bool:
    """Return True if the time is past `due` (Trio's clock) by more than a quarter of `window` seconds.

    This process then stood still and may not have read input that arrived in time.
    """
    return trio.current_time() - due > window / 4


async def catch_up() -> None:
    """Let other tasks read and handle the input that has arrived."""
    for _ in range(_PASSES):
        await trio.lowlevel.checkpoint()


async def silence(heard: Callable[[], float], window: Callable[[], float]) -> None:
    """Return once `window()` seconds have passed since `heard()`, the time of the last input in Trio's clock.

    If this process stood still at the deadline, wait one more window, at most three times in a row.
    """
    last, forgiven, due = heard(), 0, heard() + window()
    while True:
        await trio.sleep_until(due)
        late = was_suspended(due, window())
        await catch_up()
        if heard() != last:
            last, forgiven, due = heard(), 0, heard() + window()
        elif late and forgiven < _FORGIVEN:
            forgiven, due = forgiven + 1, trio.current_time() + window()
        else:
            return


async def within(seconds: float, work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `work`; cancel it and raise TooSlowError if it takes longer than `seconds`.

    As in `silence`, input that has arrived is handled first, and the limit is extended if this process stood still.
    """
    begun = trio.current_time()
    with trio.CancelScope() as scope:

        async def watch() -> None:
            await silence(lambda: begun, lambda: seconds)
            scope.cancel()

        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            try:
                return await work()
            except Exception as error:
                failure = error  # raised below, outside the nursery, so that it is not wrapped in a group
            finally:
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
    raise trio.TooSlowError
