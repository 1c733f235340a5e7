"""The recent course of a machine's own statistics for plots: an hour in fine steps, a day and a week in coarse ones."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import trio

LABELS: Final[Mapping[str, str]] = {
    "processor_used_pct": "processor",
    "memory_used_pct": "memory",
    "disk_used_pct": "disk",
    "temperature_celsius": "temperature",
    "network_received_bps": "network, received",
    "network_sent_bps": "network, sent",
    "server_processor_pct": "machine-server: part of a processor",
    "server_memory_mb": "machine-server: memory",
    "server_delay_ms": "machine-server: delay of its event loop",
}
"""What is kept, in words for people; the last word of a name is the unit. Rates of the network are bits per second."""

FIELDS: Final = tuple(LABELS)

LEVELS: Final = ((5_000, 720), (60_000, 1440), (600_000, 1008))
"""Milliseconds of a bucket, and how many are kept: an hour, a day, a week. About 1 MB when full."""

MAX_POINTS: Final = 720
SLICE: Final = 200  # buckets between two checkpoints: 2 ms
_EACH: Final = 4  # least, greatest, sum, count
_MIB: Final = 2**20


class History:
    """Statistics in buckets of time. Times are milliseconds since 1970.

    If the clock is set back, what lies after the new time is forgotten: it would be drawn in the future.
    """

    def __init__(self) -> None:
        self._levels = [_Level(step, keep) for step, keep in LEVELS]
        self._before: tuple[int, Mapping[str, float]] | None = None

    def add(self, when: int, values: Mapping[str, float]) -> None:
        """Add a sample of `engine.metrics.sample`, about one each second."""
        before, self._before = self._before or (when, values), (when, values)
        numbers = _numbers(values, before[1], (when - before[0]) / 1000)
        for level in self._levels:
            if when < before[0]:
                level.forget_after(when)
            level.add(when, numbers)

    async def series(self, start: int, end: int, points: int) -> dict[str, Any]:
        """Return the answer for plots, of the form of GET /data/series: from the finest buckets that reach back to
        `start`, joined so that there are at most `points` of them, and MAX_POINTS. Numbers have three decimals.
        """
        level = next((each for each in self._levels if each.reaches(start)), self._levels[-1])
        step = level.step * max(1, math.ceil((end - start) / (level.step * max(2, min(points, MAX_POINTS)))))
        first = start // step * step
        times = list(range(first, max(end, first + 1), step))
        joined: list[array[float] | None] = [None] * len(times)
        last: dict[int, tuple[int, float]] = {}
        for place_in_level, (when, bucket) in enumerate(list(level.between(first, end))):
            if place_in_level % SLICE == 0:
                await trio.lowlevel.checkpoint()
            place = (when - first) // step
            before = joined[place]
            joined[place] = bucket if before is None else _joined(before, bucket)
            for number in range(len(FIELDS)):
                if bucket[_EACH * number + 3]:
                    last[number] = (when, bucket[_EACH * number + 2] / bucket[_EACH * number + 3])
        fields = []
        for number in sorted(last):
            await trio.lowlevel.checkpoint()
            fields.append(_field(number, joined, last[number]))
        source = {"machine": "", "part": "", "component": "", "method": "", "tags": [], "sampled": False, "others": []}
        return {
            "from": start,
            "to": end,
            "step": step,
            "times": times,
            "sampled": False,
            "more": False,
            "series": [{**source, "fields": fields}] if fields else [],
        }


@dataclass(slots=True)
class _Level:
    """Buckets of one length, oldest first, each with its start."""

    step: int
    keep: int
    buckets: deque[tuple[int, array[float]]] = field(default_factory=deque)

    def add(self, when: int, numbers: list[float]) -> None:
        start = when // self.step * self.step
        if not self.buckets or self.buckets[-1][0] != start:
            self.buckets.append((start, array("d", (math.inf, -math.inf, 0.0, 0.0) * len(FIELDS))))
            if len(self.buckets) > self.keep:
                self.buckets.popleft()
        bucket = self.buckets[-1][1]
        for number, value in enumerate(numbers):
            if math.isfinite(value):
                at = _EACH * number
                bucket[at] = min(bucket[at], value)
                bucket[at + 1] = max(bucket[at + 1], value)
                bucket[at + 2] += value
                bucket[at + 3] += 1

    def forget_after(self, when: int) -> None:
        while self.buckets and self.buckets[-1][0] > when:
            self.buckets.pop()

    def reaches(self, start: int) -> bool:
        """Return whether nothing after `start` was dropped."""
        return len(self.buckets) < self.keep or self.buckets[0][0] <= start

    def between(self, start: int, end: int) -> Iterator[tuple[int, array[float]]]:
        return (each for each in self.buckets if start <= each[0] < end)


def _numbers(now: Mapping[str, float], before: Mapping[str, float], seconds: float) -> list[float]:
    """Return the values of FIELDS; NaN for those that the computer does not have."""

    def rate(*names: str) -> float:
        """Return by how much counters have grown each second; NaN if one was reset or is missing."""
        grown = sum(now.get(name, math.nan) - before.get(name, math.nan) for name in names)
        return grown / seconds if seconds > 0 and grown >= 0 else math.nan

    def traffic(word: str) -> float:
        names = [name for name in now if name.startswith("net.") and name.endswith(word) and name != f"net.lo.{word}"]
        return 8 * rate(*(name for name in names if name in before)) if names else math.nan

    busy, idle = rate("host.BusySecs"), rate("host.IdleSecs")
    server = rate("proc.machine-server.UserCPUSecs", "proc.machine-server.SystemCPUSecs")
    return [
        100 * busy / (busy + idle) if busy + idle > 0 else math.nan,
        now.get("host.MemoryUsedPct", math.nan),
        now.get("host.DiskUsedPct", math.nan),
        now.get("host.TemperatureCelsius", math.nan),
        traffic("RxBytes"),
        traffic("TxBytes"),
        100 * server,
        now.get("proc.machine-server.RssMB", math.nan) * _MIB / 1e6,
        now.get("trio.LateMs", math.nan),
    ]


def _joined(before: array[float], other: array[float]) -> array[float]:
    result = array("d", before)
    for at in range(0, len(result), _EACH):
        result[at] = min(result[at], other[at])
        result[at + 1] = max(result[at + 1], other[at + 1])
        result[at + 2] += other[at + 2]
        result[at + 3] += other[at + 3]
    return result


def _field(number: int, buckets: list[array[float] | None], last: tuple[int, float]) -> dict[str, Any]:
    at = _EACH * number
    usable = [bucket if bucket is not None and bucket[at + 3] else None for bucket in buckets]
    return {
        "name": FIELDS[number],
        "label": LABELS[FIELDS[number]],
        "boolean": False,
        "min": [None if bucket is None else round(bucket[at], 3) for bucket in usable],
        "max": [None if bucket is None else round(bucket[at + 1], 3) for bucket in usable],
        "mean": [None if bucket is None else round(bucket[at + 2] / bucket[at + 3], 3) for bucket in usable],
        "count": [0 if bucket is None else int(bucket[at + 3]) for bucket in usable],
        "last": {"time": last[0], "value": last[1]},
    }
