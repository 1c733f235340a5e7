"""The independent check of a path: it proves that no shapes touch anywhere on it, not only at samples. Pure.

At each sample, the smallest distance of two shapes is computed. No point of the arm moves further than a bound that
follows from the lengths of the links, so nothing can touch until the arm has moved by that distance; there the next
sample is taken. Every sample must also have the margin.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from models.planner.scene import FAR, Near, Scene

SAFE: Final = 0.9  # part of a distance that is used before the next sample
LEAST: Final = 0.02  # mm that the arm moves at least between samples; distances are exact to this
MAX_SAMPLES: Final = 200_000  # of a path; more is refused rather than checked less densely


@dataclass(frozen=True, slots=True)
class Blocked:
    """Where a path is not free: the part of it that is, and what is too near, or None if the path is too long."""

    after: float
    near: Near | None

    def __str__(self) -> str:
        if self.near is None:
            return "the path is too long to be checked"
        return f"{self.near} after {self.after:.0%} of the way"


def check(
    scene: Scene, points: Sequence[Sequence[float]], ended: Callable[[], bool] = lambda: False
) -> tuple[float, Blocked | None]:
    """Return the smallest distance on a path, and where it is blocked, if it is. `ended` says that time is over."""
    least = FAR
    count = 0
    ways = [scene.way(a, b) for a, b in itertools.pairwise(points)]
    total = sum(ways) or 1.0
    done = 0.0
    for (a, b), way in zip(itertools.pairwise(points), ways, strict=True):
        share = 0.0
        while True:
            values = [x + (y - x) * share for x, y in zip(a, b, strict=True)]
            apart, near = scene.clearance(values)
            least = min(least, apart)
            if near is not None:
                return least, Blocked((done + share * way) / total, near)
            if share >= 1.0 or not way:
                break
            count += 1
            if count > MAX_SAMPLES or ended():
                return least, Blocked((done + share * way) / total, None)
            share = min(1.0, share + max(SAFE * apart, LEAST) / way)
        done += way
    return (least if math.isfinite(least) else FAR), None
