"""Limit the time of every test: after LIMIT seconds it fails and reports what every task was waiting for.

`@pytest.mark.limit(seconds)` sets another limit. It counts real time, whatever clock a test uses. Tests of the rig have
limits of their own, which report what the guest was doing.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import pytest
import trio

from runtime.parts.web.profiling.tasks import task_stacks

LIMIT: Final = 300.0  # seconds; the longest test takes 80 when it runs alone
FAIL_AGAIN: Final = 30.0  # seconds between the cancellation of a test and the failure of one that ignores it


class TooLong(Exception):
    """A test did not end within its time limit."""


@contextmanager
def alarm(seconds: float, late: Callable[[], None]) -> Iterator[None]:
    """Call `late` in the main thread after `seconds`, and then every FAIL_AGAIN seconds until the block ends."""
    before = signal.signal(signal.SIGALRM, lambda *_: late())
    outer = signal.setitimer(signal.ITIMER_REAL, seconds, FAIL_AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *outer)
        signal.signal(signal.SIGALRM, before)


def run(limit: float, main: Callable[[], Awaitable[Any]], **options: Any) -> Any:
    """Call `trio.run`, cancel `main` after `limit` seconds and then raise TooLong with the stacks of all tasks."""
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
            if calls > 1:  # the test blocks the loop or shields itself
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
    """Run every Trio test with `run` above."""
    for item in items:
        if item.get_closest_marker("trio") and "time_limit" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.trio(run=partial(run, _limit(item))), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Interrupt every other test after its limit."""
    on_trio = item.get_closest_marker("trio") and not hasattr(getattr(item, "obj", None), "hypothesis")
    if on_trio or "time_limit" in getattr(item, "fixturenames", ()):
        return (yield)

    def late() -> None:
        raise TooLong(f"not ended within {_limit(item):.0f} s")

    with alarm(_limit(item), late):
        return (yield)
