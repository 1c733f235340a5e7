"""How busy, full and hot the computer of a machine is, for the lists of its cloud."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping
from typing import Final

import trio

from engine.metrics import measure_host
from support import ChangeSignal

PERIOD: Final = 300.0
"""Seconds between two measurements; the share of the processors is the average of this time."""

STEPS: Final[Mapping[str, float]] = {"processor_pct": 10, "memory_pct": 5, "disk_pct": 1, "temperature_c": 5}
"""Difference from which a number is reported again, so that an idle machine does not report every time."""

_MEASURED: Final = {
    "memory_pct": "host.MemoryUsedPct",
    "disk_pct": "host.DiskUsedPct",
    "temperature_c": "host.TemperatureCelsius",
}


class ComputerNumbers:
    """Numbers of this computer by the keys of STEPS, without those that it cannot measure.

    `measure` adds the numbers of `engine.metrics.measure_host` to a mapping.
    """

    def __init__(self, measure: Callable[[MutableMapping[str, float]], None] = measure_host) -> None:
        self._measure = measure
        self._changed = ChangeSignal()
        self.reported: Mapping[str, int] = {}

    def changes(self) -> AsyncIterator[object]:
        """Yield now and whenever `reported` has changed, without end."""
        return self._changed.values(lambda: self.reported)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Measure now and every PERIOD, until cancelled. The share of the processors is known from the second time."""
        before: Mapping[str, float] = {}
        task_status.started()
        while True:
            sample: dict[str, float] = {}
            self._measure(sample)
            self._report(_numbers(sample, before))
            before = sample
            await trio.sleep(PERIOD)

    def _report(self, numbers: Mapping[str, float]) -> None:
        kept = {
            key: old for key, old in self.reported.items() if key in numbers and abs(numbers[key] - old) < STEPS[key]
        }
        reported = {key: round(number) for key, number in numbers.items()} | kept
        if reported != self.reported:
            self.reported = reported
            self._changed.announce()


def _numbers(sample: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    numbers = {key: sample[name] for key, name in _MEASURED.items() if name in sample}
    if "host.BusySecs" in sample and "host.BusySecs" in before:
        busy = sample["host.BusySecs"] - before["host.BusySecs"]
        idle = sample["host.IdleSecs"] - before["host.IdleSecs"]
        # proc(5): the time that waits for disks can decrease, and all counters do when a container is moved
        if busy >= 0 and idle >= 0 and busy + idle > 0:
            numbers["processor_pct"] = 100 * busy / (busy + idle)
    return numbers
