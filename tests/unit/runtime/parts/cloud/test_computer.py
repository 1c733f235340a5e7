"""The numbers about a computer that a machine reports, and when it reports them again."""

from __future__ import annotations

from collections.abc import MutableMapping

import trio
from trio.testing import MockClock

from runtime.parts.cloud.computer import PERIOD, ComputerNumbers


class Computer:
    """A computer whose numbers a test sets."""

    def __init__(self) -> None:
        self.numbers = {
            "host.BusySecs": 0.0,
            "host.IdleSecs": 0.0,
            "host.MemoryUsedPct": 40.4,
            "host.DiskUsedPct": 70.6,
            "host.TemperatureCelsius": 50.0,
        }

    def measure(self, values: MutableMapping[str, float]) -> None:
        values.update(self.numbers)

    def run(self, busy: float, idle: float) -> None:
        self.numbers["host.BusySecs"] += busy
        self.numbers["host.IdleSecs"] += idle


async def test_the_share_of_the_processors_is_the_average_of_the_time_between(autojump_clock: MockClock) -> None:
    computer = Computer()
    numbers = ComputerNumbers(computer.measure)
    async with trio.open_nursery() as nursery:
        await nursery.start(numbers.run)
        await trio.testing.wait_all_tasks_blocked()
        assert numbers.reported == {"memory_pct": 40, "disk_pct": 71, "temperature_c": 50}
        computer.run(75, 225)
        await trio.sleep(PERIOD + 1)
        assert numbers.reported["processor_pct"] == 25
        nursery.cancel_scope.cancel()


async def test_small_differences_are_not_reported(autojump_clock: MockClock) -> None:
    computer, seen = Computer(), list[object]()
    numbers = ComputerNumbers(computer.measure)

    async def follow() -> None:
        async for reported in numbers.changes():
            seen.append(reported)

    async with trio.open_nursery() as nursery:
        await nursery.start(numbers.run)
        nursery.start_soon(follow)
        await trio.sleep(1)
        computer.numbers |= {"host.MemoryUsedPct": 44.0, "host.DiskUsedPct": 71.5, "host.TemperatureCelsius": 54.0}
        await trio.sleep(PERIOD)
        assert len(seen) == 1, "no number differs by its step"
        computer.numbers["host.TemperatureCelsius"] = 55.0
        await trio.sleep(PERIOD)
        assert numbers.reported == {"memory_pct": 40, "disk_pct": 71, "temperature_c": 55}
        assert len(seen) == 2
        del computer.numbers["host.TemperatureCelsius"]
        await trio.sleep(PERIOD)
        assert numbers.reported == {"memory_pct": 40, "disk_pct": 71}
        nursery.cancel_scope.cancel()


async def test_counters_that_go_back_give_no_share(autojump_clock: MockClock) -> None:
    computer = Computer()
    numbers = ComputerNumbers(computer.measure)
    async with trio.open_nursery() as nursery:
        await nursery.start(numbers.run)
        for busy, idle in ((400.0, -100.0), (-100.0, 400.0), (0.0, 0.0)):
            computer.run(busy, idle)
            await trio.sleep(PERIOD + 1)
            assert "processor_pct" not in numbers.reported
        computer.run(75, 225)
        await trio.sleep(PERIOD + 1)
        assert numbers.reported["processor_pct"] == 25
        nursery.cancel_scope.cancel()
