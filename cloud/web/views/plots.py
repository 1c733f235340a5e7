"""Line plots of numbers over time, as points of an SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from rpc.pages.words import took

WIDTH: Final = 320
HEIGHT: Final = 80
MAX_POINTS: Final = 640  # two per unit of the width; more would not be visible


@dataclass(frozen=True, slots=True)
class Plot:
    """A line. `points` fits a viewBox of WIDTH times HEIGHT; `low` and `high` are the extreme values.

    If `step` is not "", the line shows one reading of each such interval, and there may be more extreme ones.
    """

    name: str
    points: str
    low: float
    high: float
    last: float
    first_time: datetime
    last_time: datetime
    count: int
    step: str = ""


def plot(name: str, values: Sequence[tuple[datetime, float]], step: timedelta = timedelta()) -> Plot | None:
    """Return a line through values in order of time; None if no value is finite."""
    finite = [(moment, value) for moment, value in values if math.isfinite(value)]
    if not finite:
        return None
    low, high = min(value for _, value in finite), max(value for _, value in finite)
    begin, end = finite[0][0], finite[-1][0]
    span, height = (end - begin).total_seconds() or 1.0, (high - low) or 1.0
    points = [
        f"{(moment - begin).total_seconds() / span * WIDTH:.1f},{HEIGHT - (value - low) / height * HEIGHT:.1f}"
        for moment, value in _thinned(finite)
    ]
    if len(points) == 1:
        points = [f"0,{HEIGHT / 2:.1f}", f"{WIDTH},{HEIGHT / 2:.1f}"]
    return Plot(
        name,
        " ".join(points),
        low,
        high,
        finite[-1][1],
        begin,
        end,
        len(finite),
        took(step.total_seconds()) if step else "",
    )


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
