"""The least, greatest and mean number of each field of readings in buckets of time, for plots. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cloud.domain.data.table import flat
from cloud.values.buckets import Buckets

MAX_NAMES: Final = 200  # names of further fields that are listed


@dataclass(frozen=True, slots=True)
class FieldNumbers:
    """The numbers of a field, with one element for each bucket: None, and a count of 0, for a bucket without numbers.

    `boolean` is true if all are booleans, which count as 0 and 1. `start` and `end` are the times of the first and the
    last number, and `last` is the latter.
    """

    name: str
    boolean: bool
    least: tuple[float | None, ...]
    greatest: tuple[float | None, ...]
    mean: tuple[float | None, ...]
    count: tuple[int, ...]
    start: int
    end: int
    last: float


def fields_of(
    readings: Iterable[tuple[int, str]], buckets: Buckets, most: int, names: Collection[str] = ()
) -> tuple[list[FieldNumbers], list[str]]:
    """Return the numbers of at most `most` fields of readings, which are JSON in order of time, and further names.

    A field is named by its path in a reading, such as `readings.temperature`. With `names`, only those are returned.
    Texts, lists, and numbers that are not finite are left out.
    """
    fields: dict[str, _Adding] = {}
    others: dict[str, None] = {}
    for moment, text in readings:
        data: Mapping[str, Any] = json.loads(text)
        for name, value in flat(data).items():
            if isinstance(value, str) or not math.isfinite(value):
                continue
            field = fields.get(name)
            if field is None:
                if (names and name not in names) or len(fields) >= most:
                    if len(others) < MAX_NAMES:
                        others[name] = None
                    continue
                field = fields[name] = _Adding(buckets.count)
            field.add((moment - buckets.first) // buckets.step, moment, value)
    return [field.built(name) for name, field in fields.items()], list(others)


class _Adding:
    """A field while its numbers are added, in order of time."""

    def __init__(self, buckets: int) -> None:
        self._least: list[float | None] = [None] * buckets
        self._greatest: list[float | None] = [None] * buckets
        self._mean: list[float | None] = [None] * buckets
        self._count = [0] * buckets
        self._boolean = True
        self._start: int | None = None
        self._end = 0
        self._last = 0.0

    def add(self, bucket: int, moment: int, value: float) -> None:
        if not isinstance(value, bool):
            self._boolean = False
        value = float(value)
        count = self._count[bucket] = self._count[bucket] + 1
        least, greatest, mean = self._least[bucket], self._greatest[bucket], self._mean[bucket]
        if least is None or greatest is None or mean is None:
            self._least[bucket] = self._greatest[bucket] = self._mean[bucket] = value
        else:
            self._least[bucket], self._greatest[bucket] = min(least, value), max(greatest, value)
            self._mean[bucket] = mean + (value / count - mean / count)  # a sum might overflow
        self._start = moment if self._start is None else self._start
        self._end, self._last = moment, value

    def built(self, name: str) -> FieldNumbers:
        assert self._start is not None
        parts = tuple(self._least), tuple(self._greatest), tuple(self._mean), tuple(self._count)
        return FieldNumbers(name, self._boolean, *parts, self._start, self._end, self._last)
