"""The shapes of a problem: which pairs may not touch, and how far apart they are. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.kinematics import Flat, Mechanism
from models.planner.problem import PlanningProblem, Solid
from models.planner.solids import Placed, distance, placed, reach_of

FAR: Final = 200.0  # mm; larger distances are not computed
KEEP: Final = 0.8  # part of a distance at the start or the goal that pairs nearer than the margin must keep
_LONG: Final = 10_000.0  # mm, for a sliding joint without limits


@dataclass(slots=True)
class SolidPair:
    """Two shapes that may not touch, by number, and the distance that they must keep (mm)."""

    a: int
    b: int
    margin: float


@dataclass(frozen=True, slots=True)
class Near:
    """The two shapes that are nearest to touching, and their distance."""

    a: Solid
    b: Solid
    distance: float

    def __str__(self) -> str:
        touch = f"are {self.distance:.1f} mm apart" if self.distance > 0 else "touch"
        return f"{self.a.label} and {self.b.label} {touch}"


@dataclass(slots=True)
class Scene:
    """Shapes, and the pairs to check. `lever` is how far a point can move (mm) for a unit of each joint."""

    mechanism: Mechanism
    solids: list[Solid]
    pairs: list[SolidPair]
    lever: list[float]
    _fixed: list[Placed | None] = field(default_factory=list)

    @classmethod
    def of(cls, problem: PlanningProblem) -> Scene:
        """Create the scene of a problem."""
        mechanism, solids = problem.mechanism, list(problem.solids)
        arm_reach = max((_reach(mechanism, solid, 1) for solid in solids if solid.body), default=0.0)
        allowed = {frozenset(pair) for pair in problem.allowed}
        origin = _origin(mechanism)
        moving = [number for number, solid in enumerate(solids) if solid.body]
        pairs = []
        for i in moving:
            for j, other in enumerate(solids):
                solid = solids[i]
                if other.body and j <= i:
                    continue  # the same shape, or a pair that is there already
                if abs(solid.body - other.body) <= 1 and (other.body or solid.owner == other.owner):
                    continue  # fixed to the same body, or neighbours in the chain
                if not other.body and _gap(other, origin) > arm_reach + problem.margin:
                    continue  # out of reach
                if not _allowed(solid, other, allowed):
                    pairs.append(SolidPair(i, j, problem.margin))
        lever = [
            1.0
            if axis.slides
            else max((_reach(mechanism, solid, number) for solid in solids if solid.body >= number), default=0.0)
            for number, axis in enumerate(mechanism.axes, 1)
        ]
        scene = cls(mechanism, solids, pairs, lever)
        scene._leave_out_joined()
        return scene

    def _leave_out_joined(self) -> None:
        """Leave out the pairs of one owner that overlap with all joints at zero: their shapes are drawn too large."""
        zero = [min(axis.high, max(axis.low, 0.0)) for axis in self.mechanism.axes]
        shapes = self.place(zero)
        self.pairs = [
            pair
            for pair in self.pairs
            if self.solids[pair.a].owner != self.solids[pair.b].owner
            or distance(shapes[pair.a], shapes[pair.b], 0.0) > 0
        ]

    def place(self, values: Sequence[float]) -> list[Placed]:
        """Return every shape at its place."""
        frames = self.mechanism.bodies(values)
        if not self._fixed:
            self._fixed = [placed(solid, frames[0]) if not solid.body else None for solid in self.solids]
        return [
            fixed if fixed is not None else placed(solid, frames[solid.body])
            for fixed, solid in zip(self._fixed, self.solids, strict=True)
        ]

    def clearance(self, values: Sequence[float]) -> tuple[float, Near | None]:
        """Return the smallest distance of a pair (at most FAR), and the pair that is nearer than its margin, if any."""
        shapes = self.place(values)
        least, worst, lacking = FAR, None, 0.0
        for pair in self.pairs:
            apart = distance(shapes[pair.a], shapes[pair.b], max(least, pair.margin))
            least = min(least, apart)
            if apart - pair.margin < lacking:
                worst, lacking = pair, apart - pair.margin
        if worst is None:
            return least, None
        near = distance(shapes[worst.a], shapes[worst.b])
        return least, Near(self.solids[worst.a], self.solids[worst.b], near)

    def relax(self, *postures: Sequence[float]) -> None:
        """Let pairs that are nearer than the margin at one of the postures be as near as KEEP of that all the way."""
        for values in postures:
            shapes = self.place(values)
            for pair in self.pairs:
                apart = distance(shapes[pair.a], shapes[pair.b], pair.margin / KEEP)
                if apart < pair.margin / KEEP:
                    pair.margin = max(0.0, min(pair.margin, KEEP * apart))

    def touching(self, values: Sequence[float]) -> Near | None:
        """Return the two shapes that overlap most, if any do."""
        shapes = self.place(values)
        least, worst = 0.0, None
        for pair in self.pairs:
            apart = distance(shapes[pair.a], shapes[pair.b], 0.0)
            if apart <= least:
                least, worst = apart, pair
        return Near(self.solids[worst.a], self.solids[worst.b], least) if worst is not None else None

    def way(self, a: Sequence[float], b: Sequence[float]) -> float:
        """Return how far (mm) any point of the arm moves at most on the way from `a` to `b`."""
        return sum(abs(x - y) * lever for x, y, lever in zip(a, b, self.lever, strict=True))


def _allowed(a: Solid, b: Solid, allowed: set[frozenset[str]]) -> bool:
    return bool(allowed) and any(frozenset((x, y)) in allowed for x in (a.label, a.owner) for y in (b.label, b.owner))


def _reach(mechanism: Mechanism, solid: Solid, joint: int) -> float:
    """Return how far a point of a moving shape is at most from the frame of a joint; 1 is the first."""
    total = reach_of(solid) + _size(solid.at)
    for number, axis in enumerate(mechanism.axes[joint - 1 : solid.body], joint):
        if number > joint:
            total += _size(axis.placement)
        if axis.slides:
            total += max(abs(limit) if math.isfinite(limit) else _LONG for limit in (axis.low, axis.high))
    return total


def _size(m: Flat) -> float:
    return math.sqrt(m[3] ** 2 + m[7] ** 2 + m[11] ** 2)


def _origin(mechanism: Mechanism) -> tuple[float, float, float]:
    m: Flat = mechanism.axes[0].placement
    return (m[3], m[7], m[11])


def _gap(solid: Solid, origin: tuple[float, float, float]) -> float:
    m = solid.at
    return math.dist((m[3], m[7], m[11]), origin) - reach_of(solid)
