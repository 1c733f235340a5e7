"""Times for a path: as fast as the limits of the joints allow, starting and ending at rest. Pure.

The speed along the path rises and falls linearly (a trapezoid for each piece). At a corner it is so low that no joint
changes its speed by more than its acceleration allows in CORNER seconds. A pass forwards and one backwards over the
corners make every piece possible.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final

CORNER: Final = 0.1  # seconds for a change of direction
SPEED: Final = 1.0  # assumed limit of a joint without one: radians per second (100 mm for a sliding joint)
ACCELERATION: Final = 2.0  # per second squared


def times_of(points: Sequence[Sequence[float]], speeds: Sequence[float], accelerations: Sequence[float]) -> list[float]:
    """Return the time of each point. Empty limits mean SPEED and ACCELERATION; an infinite one does, too."""
    if len(points) < 2:
        return [0.0] * len(points)
    count = len(points[0])
    fastest = _limits(speeds, count, SPEED)
    strongest = _limits(accelerations, count, ACCELERATION)
    lengths, directions = [], []
    for a, b in itertools.pairwise(points):
        change = [y - x for x, y in zip(a, b, strict=True)]
        size = math.sqrt(sum(part * part for part in change))
        lengths.append(size)
        directions.append([part / size if size else 0.0 for part in change])
    top = [_least(fastest, direction) for direction in directions]
    pull = [_least(strongest, direction) for direction in directions]
    corners = [0.0]
    for (a, b), before, behind in zip(itertools.pairwise(directions), top, top[1:], strict=False):
        change = [y - x for x, y in zip(a, b, strict=True)]
        corners.append(min(before, behind, CORNER * _least(strongest, change)))
    corners.append(0.0)
    for i, size in enumerate(lengths):
        corners[i + 1] = min(corners[i + 1], math.sqrt(corners[i] ** 2 + 2 * pull[i] * size))
    for i in reversed(range(len(lengths))):
        corners[i] = min(corners[i], math.sqrt(corners[i + 1] ** 2 + 2 * pull[i] * lengths[i]))
    times = [0.0]
    for i, size in enumerate(lengths):
        times.append(times[-1] + _duration(size, corners[i], corners[i + 1], top[i], pull[i]))
    return times


def _limits(numbers: Sequence[float], count: int, default: float) -> list[float]:
    limits = list(numbers) or [default] * count
    return [limit if math.isfinite(limit) and limit > 0 else default for limit in limits]


def _least(limits: Sequence[float], direction: Sequence[float]) -> float:
    """Return the speed along a direction at which the first joint reaches its limit."""
    return min((limit / abs(part) for limit, part in zip(limits, direction, strict=True) if part), default=math.inf)


def _duration(size: float, entry: float, leaving: float, top: float, pull: float) -> float:
    if not size:
        return 0.0
    peak = min(top, math.sqrt(pull * size + (entry**2 + leaving**2) / 2))
    ramps = (2 * peak**2 - entry**2 - leaving**2) / (2 * pull)
    return (2 * peak - entry - leaving) / pull + max(0.0, size - ramps) / peak
