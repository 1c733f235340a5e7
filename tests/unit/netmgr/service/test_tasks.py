"""Tasks by name: start, stop, and repetition after failures."""

from __future__ import annotations

from itertools import pairwise

import trio
from trio.testing import MockClock

from netmgr.service.tasks import HEALTHY, Tasks
from schema.errors import MachineError


async def test_a_failing_task_starts_again_with_growing_pauses(autojump_clock: MockClock) -> None:
    times: list[float] = []

    async def fail() -> None:
        times.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        raise MachineError("no device")

    async with trio.open_nursery() as nursery:
        tasks = Tasks(nursery)
        tasks.start("a", fail)
        tasks.start("a", fail)  # it runs already
        await trio.sleep(300)
        await tasks.stop("a")
        assert "a" not in tasks
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert 5 < len(times) < 15
    assert pauses[0] <= 2
    assert max(pauses) <= 65
    assert max(pauses) > 20


async def test_a_failure_after_a_while_counts_as_the_first(autojump_clock: MockClock) -> None:
    times: list[float] = []

    async def fail_late() -> None:
        times.append(trio.current_time())
        await trio.sleep(HEALTHY + 1)
        raise OSError(19, "No such device")

    async with trio.open_nursery() as nursery:
        tasks = Tasks(nursery)
        tasks.start("a", fail_late)
        await trio.sleep(1000)
        await tasks.stop("a")
    assert all(later - earlier < HEALTHY + 4 for earlier, later in pairwise(times))


async def test_a_stopped_task_has_cleaned_up(autojump_clock: MockClock) -> None:
    cleaned = False

    async def run() -> None:
        nonlocal cleaned
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
            cleaned = True

    async with trio.open_nursery() as nursery:
        tasks = Tasks(nursery)
        tasks.start("a", run)
        await trio.sleep(1)
        await tasks.stop("a")
        assert cleaned
        await tasks.stop("a")
        await tasks.stop("never started")


async def test_a_task_that_returns_is_forgotten(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        tasks = Tasks(nursery)
        tasks.start("a", trio.lowlevel.checkpoint)
        await trio.sleep(1)
        assert "a" not in tasks
