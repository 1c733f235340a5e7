"""Concurrent calls: all results are returned, the first error cancels the others and is raised without a group."""

from __future__ import annotations

from functools import partial

import pytest
import trio

from schema.errors import ErrorKind, MachineError
from support.gather import gather, unwrap


async def fail(error: Exception, after: float) -> None:
    await trio.sleep(after)
    raise error


async def test_calls_run_concurrently(autojump_clock: trio.testing.MockClock) -> None:
    begin = trio.current_time()
    await gather(*[partial(trio.sleep, 3)] * 5)
    assert trio.current_time() - begin == pytest.approx(3)


async def test_the_first_error_cancels_the_others_and_is_bare(autojump_clock: trio.testing.MockClock) -> None:
    first, begin = MachineError("first", kind=ErrorKind.INVALID), trio.current_time()
    with pytest.raises(MachineError) as caught:
        await gather(partial(fail, first, 1), partial(fail, MachineError("later"), 2), trio.sleep_forever)
    assert caught.value is first
    assert trio.current_time() - begin == pytest.approx(1)


async def test_other_errors_stay_in_their_group(autojump_clock: trio.testing.MockClock) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await gather(partial(fail, ValueError("bug"), 1), trio.sleep_forever)
    assert isinstance(caught.value.exceptions[0], ValueError)


def test_a_nested_error_is_unwrapped() -> None:
    error = MachineError("inside")
    group = ExceptionGroup("outer", [ValueError("bug"), ExceptionGroup("inner", [error])])
    assert unwrap(group) is error
    assert unwrap(bug := ExceptionGroup("bugs", [ValueError("bug")])) is bug
