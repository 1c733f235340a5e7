"""Line plots of numbers over time, as points of an SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cloud.domain.data.buckets import FieldNumbers
from cloud.values.buckets import Buckets
from cloud.values.times import moment_of

WIDTH: Final = 320
HEIGHT: Final = 80
MAX_POINTS: Final = 640  # two per unit of the width; more would not be visible


@dataclass(frozen=True, slots=True)
class Plot:
    """A line. `points` fits a viewBox of WIDTH times HEIGHT; `low` and `high` are the extreme values.

    If `sampled`, it is made of a sample of the readings, and there may be more extreme values.
    """

    name: str
    points: str
    low: float
    high: float
    last: float
    first_time: datetime
    last_time: datetime
    count: int
    sampled: bool = False


def plot(name: str, field: FieldNumbers, buckets: Buckets, *, sampled: bool = False) -> Plot:
    """Return a line through the least and the greatest number of each bucket."""
    present = [number for number, count in enumerate(field.count) if count]
    lows, highs = [low for low in field.least if low is not None], [high for high in field.greatest if high is not None]
    low, high = min(lows), max(highs)
    span, height = (present[-1] - present[0]) or 1, (high - low) or 1.0
    points = [
        f"{(number - present[0]) / span * WIDTH:.1f},{HEIGHT - (value - low) / height * HEIGHT:.1f}"
        for number, *pair in zip(present, lows, highs, strict=True)
        for value in dict.fromkeys(pair)
    ]
    if len(points) == 1:
        points = [f"0,{HEIGHT / 2:.1f}", f"{WIDTH},{HEIGHT / 2:.1f}"]
    times = moment_of(field.start), moment_of(field.end)
    return Plot(name, " ".join(points), low, high, field.last, *times, sum(field.count), sampled)


@dataclass(frozen=True, slots=True)
class Curve:
    """A line over steps. `points` fits a viewBox of WIDTH times HEIGHT."""

    name: str
    points: str
    low: float
    high: float
    last: float
    first_step: float
    last_step: float
    count: int


def curve(name: str, values: Sequence[tuple[float, float]]) -> Curve | None:
    """Return a line through pairs of step and value; None if no value is finite. Later values of a step win."""
    by_step = {step: value for step, value in values if math.isfinite(value) and math.isfinite(step)}
    if not by_step:
        return None
    steps = sorted(by_step)
    moments = [(datetime.min + timedelta(seconds=number), by_step[step]) for number, step in enumerate(steps)]
    kept = {round((moment - datetime.min).total_seconds()) for moment, _ in _thinned(moments)}
    low, high = min(by_step.values()), max(by_step.values())
    span, height = (steps[-1] - steps[0]) or 1.0, (high - low) or 1.0
    points = [
        f"{(step - steps[0]) / span * WIDTH:.1f},{HEIGHT - (by_step[step] - low) / height * HEIGHT:.1f}"
        for number, step in enumerate(steps)
        if number in kept
    ]
    if len(points) == 1:
        points = [f"0,{HEIGHT / 2:.1f}", f"{WIDTH},{HEIGHT / 2:.1f}"]
    return Curve(name, " ".join(points), low, high, by_step[steps[-1]], steps[0], steps[-1], len(steps))


def _thinned(values: Sequence[tuple[datetime, float]]) -> list[tuple[datetime, float]]:
    """Reduce values to at most MAX_POINTS, keeping the minimum and maximum of each interval."""
    if len(values) <= MAX_POINTS:
        return list(values)
    size = math.ceil(len(values) / (MAX_POINTS // 2))
    thinned: list[tuple[datetime, float]] = []
    for start in range(0, len(values), size):
        interval = values[start : start + size]
        extremes = {id(point): point for point in (min(interval, key=_value), max(interval, key=_value))}
        thinned += sorted(extremes.values(), key=lambda point: point[0])
    return thinned


def _value(point: tuple[datetime, float]) -> float:
    return point[1]
