"""Forward and inverse kinematics of a chain; the random starting points are seeded with the goal."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Final

from runtime.engine.components.motion.kinematics import JointType
from runtime.engine.geometry.spatial import (
    Transform,
    Vector,
    about,
    apply,
    cross,
    length,
    multiply,
    rotation_vector,
    scale,
    subtract,
    transpose,
)
from runtime.engine.geometry.sva import Chain, Joint, Link

SIX_AXIS: Final = Chain(
    "six_axis",
    (
        Joint("waist", JointType.REVOLUTE, (0.0, 0.0, 1.0), -360.0, 360.0),
        Link("column", Transform(translation=(0.0, 0.0, 250.0))),
        Joint("shoulder", JointType.REVOLUTE, (0.0, 1.0, 0.0), -135.0, 135.0),
        Link("upper_arm", Transform(translation=(0.0, 0.0, 300.0))),
        Joint("elbow", JointType.REVOLUTE, (0.0, 1.0, 0.0), -150.0, 150.0),
        Link("forearm", Transform(translation=(0.0, 0.0, 250.0))),
        Joint("forearm_roll", JointType.REVOLUTE, (0.0, 0.0, 1.0), -360.0, 360.0),
        Link("wrist", Transform(translation=(0.0, 0.0, 50.0))),
        Joint("wrist_pitch", JointType.REVOLUTE, (0.0, 1.0, 0.0), -125.0, 125.0),
        Link("hand", Transform(translation=(0.0, 0.0, 80.0))),
        Joint("flange_roll", JointType.REVOLUTE, (0.0, 0.0, 1.0), -360.0, 360.0),
        Link("flange", Transform(translation=(0.0, 0.0, 60.0))),
    ),
)
"""A table-top arm with a reach of about a metre, straight up at zero."""

CLOSE_MM: Final = 0.05  # tolerance of the inverse, in mm
CLOSE_RAD: Final = 1e-3  # and in radians
_MM_PER_RADIAN: Final = 200.0  # weight of a radian in the error, in mm
_DAMPING: Final = 4.0  # mm; keeps steps finite near singular poses
_STEPS: Final = 80  # per attempt
_ATTEMPTS: Final = 12
_MAX_STEP: Final = 0.4  # maximum per step and joint: radians (or 40 mm)


def forward(chain: Chain, values: Sequence[float]) -> Transform:
    """Return the transform of the output with joints at `values` (degrees, mm)."""
    return _walk(chain, values)[0]


def _walk(chain: Chain, values: Sequence[float]) -> tuple[Transform, list[tuple[Joint, Vector, Vector]]]:
    """Return the transform of the output, and for each joint its axis and a point on it, in the frame of the base."""
    transform = Transform()
    axes: list[tuple[Joint, Vector, Vector]] = []
    position = iter(values)
    for part in chain.parts:
        if isinstance(part, Link):
            transform = transform.then(part.transform)
            continue
        value = next(position)
        axes.append((part, apply(transform.rotation, part.axis), transform.translation))
        if part.type is JointType.PRISMATIC:
            transform = transform.then(Transform(translation=scale(part.axis, value / length(part.axis))))
        else:
            transform = transform.then(Transform(about(part.axis, math.radians(value))))
    return transform, axes


def _error(current: Transform, goal: Transform) -> tuple[Vector, Vector]:
    rotation = rotation_vector(multiply(goal.rotation, transpose(current.rotation)))
    return subtract(goal.translation, current.translation), rotation


def attempts(chain: Chain, goal: Transform, start: Sequence[float]) -> Iterator[list[float] | None]:
    """Try to reach `goal` from `start`, then from random places; yields None after each step, or joint values.

    A step takes a fraction of a millisecond, so a caller can let other tasks run in between. Joint values are the last
    item.
    """
    rng = random.Random(repr(goal))
    guess = list(start)
    for _ in range(_ATTEMPTS):
        for solution in _iterate(chain, goal, guess):
            yield solution
            if solution is not None:
                return
        guess = [rng.uniform(max(joint.low, -180.0), min(joint.high, 180.0)) for joint in chain.joints]


def _iterate(chain: Chain, goal: Transform, start: Sequence[float]) -> Iterator[list[float] | None]:
    """Iterate damped least squares, with joints kept within their limits."""
    values = list(start)
    for _ in range(_STEPS):
        current, axes = _walk(chain, values)
        offset, rotation = _error(current, goal)
        if length(offset) < CLOSE_MM and length(rotation) < CLOSE_RAD:
            yield values
            return
        rows = []  # one per joint: the change of the error for a unit of the joint
        for joint, axis, point in axes:
            unit = scale(axis, 1 / length(axis))
            if joint.type is JointType.PRISMATIC:
                rows.append([*unit, 0.0, 0.0, 0.0])
            else:
                rows.append([*cross(unit, subtract(current.translation, point)), *scale(unit, _MM_PER_RADIAN)])
        error = [*offset, *scale(rotation, _MM_PER_RADIAN)]
        square = [
            [sum(row[i] * row[j] for row in rows) + (_DAMPING**2 if i == j else 0.0) for j in range(6)]
            for i in range(6)
        ]
        weights = _solve(square, error)
        for index, (row, (joint, _, _)) in enumerate(zip(rows, axes, strict=True)):
            step = sum(a * b for a, b in zip(row, weights, strict=True))
            if joint.type is JointType.PRISMATIC:
                step = max(-100 * _MAX_STEP, min(100 * _MAX_STEP, step))
            else:
                step = math.degrees(max(-_MAX_STEP, min(_MAX_STEP, step)))
            values[index] = max(joint.low, min(joint.high, values[index] + step))
        yield None


def _solve(matrix: list[list[float]], vector: list[float]) -> list[float]:
    """Solve by Gaussian elimination with pivoting; damping makes the matrix positive definite."""
    size = len(vector)
    rows = [[*row, value] for row, value in zip(matrix, vector, strict=True)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, size):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    result = [0.0] * size
    for i in reversed(range(size)):
        result[i] = (rows[i][size] - sum(rows[i][k] * result[k] for k in range(i + 1, size))) / rows[i][i]
    return result
