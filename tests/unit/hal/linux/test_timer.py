"""Kernel timers with short periods, on the real clock."""

from __future__ import annotations

import itertools
import time

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from hal.linux import clock
from hal.linux.hardware import LinuxHardware
from hal.linux.timer import ClockChanges, Timer


async def test_ticks_are_periods_from_entering_on() -> None:
    with trio.fail_after(30):
        start = trio.current_time()
        async with LinuxHardware().ticks(0.005) as beat:
            beats = 0
            async for count in beat:
                beats += count
                assert trio.current_time() - start >= beats * 0.005 - 0.0001, "never early"
                if beats >= 10:
                    break


async def test_lateness_does_not_add_up_and_missed_beats_are_reported() -> None:
    with trio.fail_after(30):
        earliest = trio.current_time()
        async with LinuxHardware().ticks(0.005) as beat:
            latest = trio.current_time()  # the beat began between the two times
            beats = await anext(aiter(beat))
            await trio.sleep(0.031)
            missed = await anext(aiter(beat))
            beats += missed
            assert missed >= 6
            least = int((trio.current_time() - latest) / 0.005)
            beats += await anext(aiter(beat))
            most = int((trio.current_time() - earliest) / 0.005)
            assert least <= beats <= most, "beats are on the grid of the beginning"


@pytest.mark.parametrize("period", [0.0, -1.0, float("nan")])
async def test_an_invalid_period_is_refused(period: float) -> None:
    with pytest.raises(ValueError, match="more than 0"):
        async with LinuxHardware().ticks(period):
            pass


async def test_a_timer_expires_at_its_deadline_of_trios_clock() -> None:
    timer = Timer()
    with trio.fail_after(30):
        for _ in range(20):
            deadline = trio.current_time() + 0.0007
            timer.arm(deadline)
            assert await timer.expired() == 1
            assert trio.current_time() >= deadline
        timer.arm(trio.current_time() - 10)
        assert await timer.expired() == 1, "a deadline that has passed"
    timer.close()


async def test_a_clock_that_was_read_late_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread loses the processor before three of every four readings."""
    real = time.monotonic
    delays = itertools.cycle([7.0, 7.0, 7.0, 0.0])
    late = 0.0

    def monotonic() -> float:
        nonlocal late
        late += next(delays)
        return real() + late

    expected = clock.trio_offset()
    monkeypatch.setattr(clock.time, "monotonic", monotonic)
    monkeypatch.setattr(clock.trio, "current_time", lambda: real() + expected + late)
    assert clock.trio_offset() == pytest.approx(expected, abs=0.5)


async def test_a_timer_is_rearmed_and_disarmed_while_a_task_waits() -> None:
    timer = Timer()
    expired = []

    async def wait() -> None:
        expired.append(await timer.expired())

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            timer.arm(trio.current_time() + 3600)
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            timer.arm(trio.current_time())
    assert expired == [1]
    timer.arm(trio.current_time())
    timer.disarm()
    with trio.move_on_after(0.01) as limit:
        await timer.expired()
    assert limit.cancelled_caught
    timer.close()


async def test_closing_wakes_waiters() -> None:
    timer = Timer()

    async def wait() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await timer.expired()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            timer.close()
            timer.close()


async def test_a_clock_that_is_not_set_is_not_reported_and_closing_ends_the_wait() -> None:
    changes = ClockChanges()
    async with trio.open_nursery() as nursery:

        async def wait() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await changes.next()

        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        changes.close()
        changes.close()
