"""Problems for tests: arms, boxes, and generated scenes."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import msgspec

from engine.geometry.spatial import Transform, about
from engine.kinematics import arms
from engine.kinematics.mechanism import Flat, flat, mechanism_of
from models.planner.build import arm_solids
from models.planner.problem import PlanningProblem, Solid
from models.planner.scene import Scene
from models.planner.solids import Placed

HOME = [0.0, -1.2, 1.5, -1.8, -1.57, 0.0]  # of a ur5e: the hand down, in front


def box(
    label: str, size: Sequence[float], at: Sequence[float], turn: float = 0.0, axis: Sequence[float] = (0, 0, 1)
) -> Solid:
    place = flat(Transform(about((axis[0], axis[1], axis[2]), turn), (at[0], at[1], at[2])))
    return Solid(label, label, 0, place, (size[0] / 2, size[1] / 2, size[2] / 2), 0.0)


def ball(label: str, radius: float, at: Sequence[float]) -> Solid:
    return Solid(label, label, 0, flat(Transform(translation=(at[0], at[1], at[2]))), (0.0, 0.0, 0.0), radius)


def bar(label: str, radius: float, length: float, at: Sequence[float], turn: float = 0.0) -> Solid:
    place = flat(Transform(about((1.0, 0.0, 0.0), turn), (at[0], at[1], at[2])))
    return Solid(label, label, 0, place, (0.0, 0.0, length / 2 - radius), radius)


TABLE = box("table", (1600, 1600, 40), (0, 0, -30))


def problem(*obstacles: Solid, name: str = "ur5e", start: Sequence[float] = HOME, **changes: object) -> PlanningProblem:
    """Return a problem whose goal is its start, unless it is changed."""
    chain = arms.named(name)
    whole = PlanningProblem(
        mechanism=mechanism_of(chain),
        start=list(start),
        goal_values=list(start),
        solids=[*arm_solids(chain, "arm"), TABLE, *obstacles],
    )
    if "goal" in changes:
        changes["goal_values"] = None
    return msgspec.structs.replace(whole, **changes)  # type: ignore[arg-type]


def turned(angle: float) -> list[float]:
    """Return HOME with the base turned."""
    return [angle, *HOME[1:]]


def generated(seed: int) -> PlanningProblem:
    """Return a random scene with a start and a goal that touch nothing."""
    rng = random.Random(seed)
    name = rng.choice(["ur5e", "xarm6", "xarm7", "lite6", "six_axis"])
    chain = arms.named(name)
    mechanism = mechanism_of(chain)
    reach = 700 if name in ("ur5e", "six_axis") else 500
    while True:
        obstacles = []
        for number in range(rng.randint(1, 6)):
            angle, radius = rng.uniform(-math.pi, math.pi), rng.uniform(0.35, 1.0) * reach
            at = (radius * math.cos(angle), radius * math.sin(angle), rng.uniform(50, 600))
            kind = rng.choice(["box", "ball", "bar"])
            label = f"{kind} {number}"
            if kind == "box":
                size = [rng.uniform(20, 400) for _ in range(3)]
                obstacles.append(box(label, size, at, rng.uniform(0, 3), (rng.random(), rng.random(), 1)))
            elif kind == "ball":
                obstacles.append(ball(label, rng.uniform(20, 150), at))
            else:
                radius = rng.uniform(10, 40)
                obstacles.append(bar(label, radius, 2 * radius + rng.uniform(10, 600), at, rng.uniform(0, 3)))
        ends = []
        for _ in range(40):
            values = [rng.uniform(max(axis.low, -2.5), min(axis.high, 2.5)) for axis in mechanism.axes]
            whole = problem(*obstacles, name=name, start=values)
            if Scene.of(whole).touching(values) is None:
                ends.append(values)
            if len(ends) == 2:
                return msgspec.structs.replace(whole, start=ends[0], goal_values=ends[1], seed=seed + 1, seconds=3.0)


def sampled_distance(a: Placed, b: Placed, count: int = 7) -> float:
    """Return an upper bound of a distance, from points of both shapes."""
    shares = [-1 + 2 * i / (count - 1) for i in range(count)]

    def points(shape: Placed) -> list[tuple[float, float, float]]:
        every = [(shape.x, shape.y, shape.z)]
        for edge in shape.edges:
            every = [
                (x + share * edge[0], y + share * edge[1], z + share * edge[2]) for x, y, z in every for share in shares
            ]
        return every

    least = min(math.dist(p, q) for p in points(a) for q in points(b))
    return least - a.radius - b.radius


def place(values: Sequence[float]) -> Flat:
    return flat(Transform(translation=(values[0], values[1], values[2])))
