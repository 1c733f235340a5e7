"""Motions of the output along a straight line, and how far a motion deviates from it. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine.kinematics import IDENTITY, Axis, Flat, Mechanism, after_joint, compose, deviation, rotation_between, track
from models.planner.problem import Constraints

STEP_MM: Final = 5.0  # between points on a line
STEP_RAD: Final = math.radians(2.0)
JUMP: Final = 0.35  # largest change of a joint between two points (radians, or 35 mm): more is a change of posture
_MAX_POINTS: Final = 4000
_PROBES: Final = 16  # of the direct rotation, for the nearest orientation on it


@dataclass(frozen=True, slots=True)
class Deviation:
    """Where a motion breaks its constraints: how far it is from the line (mm), or turned away (radians)."""

    after: float
    offset: float
    rotation: float

    def __str__(self) -> str:
        return (
            f"{self.offset:.1f} mm from the line and turned by {math.degrees(self.rotation):.1f}° "
            f"after {self.after:.0%} of the way"
        )


class StraightWay:
    """The straight way between two poses: positions on a line, rotations about one axis."""

    def __init__(self, start: Flat, goal: Flat) -> None:
        self.start, self.goal = start, goal
        self.length, self.angle = deviation(start, goal)
        x, y, z = rotation_between(start, goal)
        size = math.sqrt(x * x + y * y + z * z)
        axis = (x / size, y / size, z / size) if size > 1e-9 else (0.0, 0.0, 1.0)
        self._turn = Axis("", IDENTITY, axis, False, 0.0, 0.0)

    def at(self, share: float) -> Flat:
        """Return the pose at a part of the way (0 to 1)."""
        turned = after_joint(IDENTITY, self._turn, self.angle * share)
        m = compose(turned, self.start)
        x, y, z = (self.start[i] + (self.goal[i] - self.start[i]) * share for i in (3, 7, 11))
        return (*m[:3], x, *m[4:7], y, *m[8:11], z)

    def deviation(self, pose: Flat, constraints: Constraints) -> tuple[float, float]:
        """Return the distance of a pose from the line, and from the nearest orientation of the direct rotation."""
        way = [self.goal[i] - self.start[i] for i in (3, 7, 11)]
        offset = [pose[i] - self.start[i] for i in (3, 7, 11)]
        square = sum(part * part for part in way)
        share = max(0.0, min(1.0, sum(a * b for a, b in zip(way, offset, strict=True)) / square)) if square else 0.0
        away = math.sqrt(sum((b - share * a) ** 2 for a, b in zip(way, offset, strict=True)))
        if constraints.rotation is None:
            return away, 0.0
        probes = [number / _PROBES for number in range(_PROBES + 1)] if self.angle > 1e-6 else [0.0]
        best = min(probes, key=lambda probe: _turned(self.at(probe), pose, constraints))
        width = 1 / _PROBES
        for _ in range(12 if len(probes) > 1 else 0):
            width /= 2
            choices = (max(0.0, best - width), best, min(1.0, best + width))
            best = min(choices, key=lambda probe: _turned(self.at(probe), pose, constraints))
        return away, _turned(self.at(best), pose, constraints)

    def broken_by(
        self, mechanism: Mechanism, values: Sequence[float], constraints: Constraints
    ) -> tuple[float, float] | None:
        """Return the deviation of a posture that breaks the constraints, None if it keeps them."""
        away, turned = self.deviation(mechanism.output(values), constraints)
        too_far = constraints.line is not None and away > constraints.line
        return (
            (away, turned) if too_far or (constraints.rotation is not None and turned > constraints.rotation) else None
        )


def _turned(a: Flat, b: Flat, constraints: Constraints) -> float:
    if constraints.ignore_roll:
        cosine = a[2] * b[2] + a[6] * b[6] + a[10] * b[10]
        return math.acos(max(-1.0, min(1.0, cosine)))
    return deviation(a, b)[1]


def along(mechanism: Mechanism, line: StraightWay, start: Sequence[float]) -> list[list[float]] | float:
    """Return joint positions that move the output along a line, or the part of it that the arm can follow."""
    count = max(1, math.ceil(line.length / STEP_MM), math.ceil(line.angle / STEP_RAD))
    if count > _MAX_POINTS:
        return 0.0
    points = [list(start)]
    for number in range(1, count + 1):
        values = track(mechanism, line.at(number / count), points[-1])
        if values is None or any(
            abs(x - y) > (100 * JUMP if axis.slides else JUMP)
            for x, y, axis in zip(values, points[-1], mechanism.axes, strict=True)
        ):
            return (number - 1) / count
        points.append(values)
    return points


def deviation_of(
    mechanism: Mechanism, line: StraightWay, points: Sequence[Sequence[float]], constraints: Constraints
) -> Deviation | None:
    """Return where a path breaks the constraints; checked at its points and between them, None if it keeps them."""
    if constraints.line is None and constraints.rotation is None:
        return None
    total = max(1, len(points) - 1)
    for number, (a, b) in enumerate(itertools.pairwise(points)):
        largest = max(
            (abs(x - y) / (100 if axis.slides else 1) for x, y, axis in zip(a, b, mechanism.axes, strict=True)),
            default=0.0,
        )
        pieces = max(2, math.ceil(largest / (STEP_RAD / 2)))
        for piece in range(1, pieces + 1):
            share = piece / pieces
            broken = line.broken_by(mechanism, [x + (y - x) * share for x, y in zip(a, b, strict=True)], constraints)
            if broken is not None:
                return Deviation((number + share) / total, *broken)
    return None
