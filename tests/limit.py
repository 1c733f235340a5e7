"""No test waits for ever: after LIMIT seconds it fails and tells what every task was waiting for.

`@pytest.mark.limit(seconds)` gives a test more. The time is that of the wall, whatever clock a test has. Tests of the
rig have limits of their own, that tell what the guest was doing.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import pytest
import trio

from runtime.profiling.tasks import task_stacks

LIMIT: Final = 300.0  # seconds; the longest takes 80 alone
FAIL_AGAIN: Final = 30.0  # seconds; for what neither ends nor can be cancelled


class TooLong(Exception):
    """A test has not ended within its time."""


@contextmanager
def alarm(seconds: float, late: Callable[[], None]) -> Iterator[None]:
    """Have `late` called in the main thread after so many seconds, and once more a little later."""
    before = signal.signal(signal.SIGALRM, lambda *_: late())
    outer = signal.setitimer(signal.ITIMER_REAL, seconds, FAIL_AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *outer)
        signal.signal(signal.SIGALRM, before)


def run(limit: float, main: Callable[[], Awaitable[Any]], **options: Any) -> Any:
    """`trio.run` that cancels what has not ended within `limit` seconds and raises TooLong with the tasks' stacks."""
    stacks = ""

    async def bounded() -> Any:
        token = trio.lowlevel.current_trio_token()
        calls = 0

        def cancel() -> None:
            nonlocal stacks
            stacks = task_stacks()
            scope.cancel()

        def late() -> None:
            nonlocal calls
            calls += 1
            if calls > 1:  # it blocks the loop, or shields itself
                raise TooLong(f"not ended within {limit:.0f} s, nor after it was cancelled\n{stacks}")
            token.run_sync_soon(cancel)

        with alarm(limit, late), trio.CancelScope() as scope:
            return await main()

    try:
        result = trio.run(bounded, **options)
    except BaseException as error:
        if stacks and not isinstance(error, TooLong):
            raise TooLong(f"not ended within {limit:.0f} s:\n{stacks}") from error
        raise
    if stacks:
        raise TooLong(f"not ended within {limit:.0f} s:\n{stacks}")
    return result


def _limit(item: pytest.Item) -> float:
    marker = item.get_closest_marker("limit")
    return float(marker.args[0]) if marker else LIMIT


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test on Trio runs with `run` above."""
    for item in items:
        if item.get_closest_marker("trio") and "time_limit" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.trio(run=partial(run, _limit(item))), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Every other test is interrupted."""
    on_trio = item.get_closest_marker("trio") and not hasattr(getattr(item, "obj", None), "hypothesis")
    if on_trio or "time_limit" in getattr(item, "fixturenames", ()):
        return (yield)

    def late() -> None:
        raise TooLong(f"not ended within {_limit(item):.0f} s")

    with alarm(_limit(item), late):
        return (yield)
