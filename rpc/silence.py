"""Deadlines of peers: nobody is given up for what this process has not had a chance to hear.

A process that was stopped, or that another kept from running, wakes up with its deadlines behind it and with input that
nobody has read. So a deadline is first checked against what has arrived; and if it is noticed much too late, the time
counts from then on. Trio's clock does not follow changes of the computer's date.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

_PASSES: Final = 16  # of the scheduler: a socket is read in the first, and its call runs a few later
_FORGIVEN: Final = 3  # times in a row, so that a process that is always late gives up at last


T = TypeVar("T")


def stood_still(due: float, window: float) -> bool:
    """Whether it is much later than `due` (Trio's clock), the end of `window` seconds, so that nobody was heard."""
    return trio.current_time() - due > window / 4


async def catch_up() -> None:
    """Let the input that has arrived be read and acted upon."""
    for _ in range(_PASSES):
        await trio.lowlevel.checkpoint()


async def silence(heard: Callable[[], float], window: Callable[[], float]) -> None:
    """Return once nothing was heard for `window()` seconds since `heard()`, in Trio's clock.

    If this process stood still at that time, a whole window more is waited for, at most three times in a row.
    """
    last, forgiven, due = heard(), 0, heard() + window()
    while True:
        await trio.sleep_until(due)
        late = stood_still(due, window())
        await catch_up()
        if heard() != last:
            last, forgiven, due = heard(), 0, heard() + window()
        elif late and forgiven < _FORGIVEN:
            forgiven, due = forgiven + 1, trio.current_time() + window()
        else:
            return


async def within(seconds: float, work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `work`; TooSlowError, after its cancellation, if it takes longer than `seconds`.

    The limit is that of `silence`: input that has arrived is read first, and time in which this process stood still
    does not count.
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
                failure = error  # leaves as it is, not in a group
            finally:
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
    raise trio.TooSlowError
