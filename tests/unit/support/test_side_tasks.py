"""A side task: its failure ends the next wait, it ends with the block, and exceptions of the block are not wrapped."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
import trio

from support.side_tasks import SideTask, side_task


async def fail() -> None:
    await trio.sleep(1)
    raise OSError("gone")


async def test_its_failure_ends_the_wait_now_and_later(autojump_clock: trio.testing.MockClock) -> None:
    begin = trio.current_time()
    async with side_task(fail) as side:
        with pytest.raises(OSError, match="gone"):
            await side.until(trio.sleep_forever)
        assert trio.current_time() - begin == pytest.approx(1)
        with pytest.raises(OSError, match="gone"):
            await side.until(trio.sleep_forever)


async def test_it_is_cancelled_when_the_block_is_left(autojump_clock: trio.testing.MockClock) -> None:
    ended = trio.Event()

    async def task() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    async with side_task(task) as side:

        async def answer() -> int:
            return 5

        assert await side.until(answer) == 5
    assert ended.is_set()


async def test_the_first_failure_counts(autojump_clock: trio.testing.MockClock) -> None:
    side = SideTask()
    side.fail(OSError("first"))
    side.fail(OSError("second"))
    async with side_task(trio.sleep_forever, side):
        with pytest.raises(OSError, match="first"):
            await side.until(trio.sleep_forever)


async def test_an_exception_of_the_block_is_bare_and_generators_close(autojump_clock: trio.testing.MockClock) -> None:
    with pytest.raises(KeyError):
        async with side_task(trio.sleep_forever):
            raise KeyError("block")

    async def numbers() -> AsyncGenerator[int, None]:
        async with side_task(trio.sleep_forever):
            yield 1

    generator = numbers()
    assert await anext(generator) == 1
    await generator.aclose()


async def test_a_generator_can_be_closed_while_its_caller_is_cancelled() -> None:
    async def numbers() -> AsyncGenerator[int, None]:
        async with side_task(trio.sleep_forever):
            yield 1

    with trio.CancelScope() as scope:
        async with aclosing(numbers()) as items:
            async for _ in items:
                scope.cancel()
                await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
