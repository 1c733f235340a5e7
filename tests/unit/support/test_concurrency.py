"""Concurrent calls: all results are returned, the first error cancels the others and is raised without a group."""

from __future__ import annotations

from functools import partial

import pytest
import trio

from schema.errors import ErrorKind, MachineError
from support.concurrency import gather, ungrouped, unwrap


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


async def failing(*errors: Exception) -> None:
    """Raise errors in tasks of nested nurseries, of which the inner one waits forever."""

    async def later(error: Exception) -> None:
        raise error

    async with trio.open_nursery() as outer, trio.open_nursery() as nursery:
        outer.start_soon(trio.sleep_forever)
        for error in errors:
            nursery.start_soon(later, error)
        await trio.sleep_forever()


async def test_expected_errors_of_tasks_are_caught_by_plain_clauses() -> None:
    for errors in ([OSError(1, "a")], [OSError(1, "a"), ValueError("b")]):
        with pytest.raises((OSError, ValueError)), ungrouped(OSError, ValueError):
            await failing(*errors)


async def test_unexpected_errors_of_tasks_stay_in_the_group() -> None:
    with pytest.raises(ExceptionGroup) as caught, ungrouped(OSError):
        await failing(OSError(1, "a"), KeyError("defect"))
    assert caught.value.subgroup(KeyError) is not None


async def test_a_cancelled_block_stays_cancelled() -> None:
    with trio.move_on_after(0) as scope, ungrouped(OSError):
        await failing()
    assert scope.cancelled_caught
