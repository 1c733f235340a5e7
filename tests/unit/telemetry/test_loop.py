"""Passes of the event loop are counted with their length."""

from __future__ import annotations

import time

import trio
import trio.lowlevel

from telemetry.metrics.loop import LIMITS, LoopPasses, loop_passes


def value(passes: LoopPasses, name: str) -> list[float]:
    (family,) = [each for each in passes.families("machine") if each.name == f"machine_loop_{name}"]
    return [number for _, number in family.samples]


def test_slow_passes_are_counted_by_length() -> None:
    times = iter([0.0, 1.0, 1.01, 2.0, 2.05, 3.0, 3.2, 4.0, 4.7])
    passes = LoopPasses(lambda: next(times))
    for _ in range(4):
        passes.after_io_wait(0)
        passes.before_io_wait(0)
    assert value(passes, "passes") == [4]
    assert [round(number, 3) for number in value(passes, "busy_seconds")] == [0.96]
    assert value(passes, "slow_passes") == [3, 2, 1]
    assert [round(number, 3) for number in value(passes, "longest_pass_seconds")] == [0.7]


async def test_a_task_that_blocks_the_loop_shows() -> None:
    passes = loop_passes()
    assert loop_passes() is passes
    await trio.lowlevel.checkpoint()
    before = passes.longer[0]
    end = time.perf_counter() + 2 * LIMITS[0]
    while time.perf_counter() < end:
        pass
    await trio.lowlevel.checkpoint()
    assert passes.longer[0] > before
    assert passes.longest >= 2 * LIMITS[0]


def test_each_run_has_counts_of_its_own() -> None:
    async def counted() -> LoopPasses:
        return loop_passes()

    assert trio.run(counted) is not trio.run(counted)
