"""Inverse kinematics: the positions of joints that bring the output of a mechanism to a pose. Pure.

Damped least squares from several starting points, with joints kept within their limits. The points are those of a
sequence that fills the space evenly, so that the same request always has the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from engine.kinematics.mechanism import WHOLE_TURN, Axis, Flat, Mechanism, rotation_between

CLOSE_MM: Final = 1e-3  # tolerance of a solution
CLOSE_RAD: Final = 1e-6
FINE_MM: Final = 1e-6  # a solution is refined to this, unless the posture is singular
FINE_RAD: Final = 2e-10  # below this, a vertical tool has an angle of 0 about its axis when its pose is read
STARTS: Final = 24  # starting points, the current posture first
MORE: Final = 8  # times as many, as long as there is no solution
SOLUTIONS: Final = 4  # different solutions after which no further starting point is tried
_STEPS: Final = 80  # of one starting point
_PATIENCE: Final = 12  # steps without progress: joints at their limits do not leave them by themselves
_MM_PER_RADIAN: Final = 200.0  # weight of a radian in the error
_DAMPING: Final = 16.0  # mm squared; keeps steps finite near singular postures
_FADING: Final = 1e-3  # of the squared error: near the goal, damping would only slow down
_LEAST_DAMPING: Final = 1e-6
_MAX_STEP: Final = 0.4  # of a joint in one step: radians, or 40 mm
_SAME: Final = 0.02  # solutions whose joints differ by less (radians, or 100 mm) are the same
_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
_FREE_RANGE: Final = math.pi  # of starting points of a joint without limits


def solutions(
    mechanism: Mechanism, goal: Flat, near: Sequence[float], *, starts: int = STARTS, count: int = SOLUTIONS
) -> Iterator[list[float] | None]:
    """Search for positions that reach `goal`; yields None after each step, and each new solution when it is there.

    A step takes a fraction of a millisecond, so a caller can let other tasks run in between. Joints that can turn more
    than once are brought as near to `near` as their limits allow.
    """
    different: list[list[float]] = []
    if _is_too_far(mechanism, goal):
        return
    for number in range(MORE * starts):
        start = list(near) if number == 0 else _starting_point(mechanism.axes, number)
        for values in _iterate(mechanism, goal, start):
            if values is None:
                yield None
                continue
            solution = unwound(mechanism.axes, values, near)
            if all(apart(mechanism.axes, solution, other) > _SAME for other in different):
                different.append(solution)
                yield solution
        if len(different) >= count or (different and number >= starts - 1):
            return


def nearest(
    mechanism: Mechanism, goal: Flat, near: Sequence[float], *, starts: int = STARTS, count: int = SOLUTIONS
) -> list[list[float]]:
    """Return the solutions, the nearest to `near` first; empty if the goal is out of reach."""
    every = [values for values in solutions(mechanism, goal, near, starts=starts, count=count) if values is not None]
    return sorted(every, key=lambda values: apart(mechanism.axes, values, near))


def track(mechanism: Mechanism, goal: Flat, start: Sequence[float]) -> list[float] | None:
    """Return the positions for a goal that is near, without a change of posture; None if there are none."""
    return next((values for values in _iterate(mechanism, goal, start) if values is not None), None)


def apart(axes: Sequence[Axis], a: Sequence[float], b: Sequence[float]) -> float:
    """Return the distance of two postures: radians, with 100 mm of a sliding joint counted as one."""
    return math.sqrt(
        sum(((x - y) / (100.0 if axis.slides else 1.0)) ** 2 for axis, x, y in zip(axes, a, b, strict=True))
    )


def unwound(axes: Sequence[Axis], values: Sequence[float], near: Sequence[float]) -> list[float]:
    """Return the same posture with joints turned by whole turns to be as near to `near` as the limits allow."""
    result = []
    for axis, value, wish in zip(axes, values, near, strict=True):
        if not axis.slides:
            turns = (wish - value) / WHOLE_TURN
            turns = round(max((axis.low - value) / WHOLE_TURN, min((axis.high - value) / WHOLE_TURN, turns)))
            value += WHOLE_TURN * turns
            value += WHOLE_TURN * ((value < axis.low) - (value > axis.high))  # rounded beyond a limit
        result.append(value)
    return result


def deviation(current: Flat, goal: Flat) -> tuple[float, float]:
    """Return how far `current` is from `goal`: mm, and radians."""
    turn = rotation_between(current, goal)
    offset = math.sqrt((goal[3] - current[3]) ** 2 + (goal[7] - current[7]) ** 2 + (goal[11] - current[11]) ** 2)
    return offset, math.sqrt(turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2)


def _is_too_far(mechanism: Mechanism, goal: Flat) -> bool:
    """Return whether a pose is further from the first joint than all lengths together."""
    reach = math.hypot(mechanism.tip[3], mechanism.tip[7], mechanism.tip[11])
    for number, axis in enumerate(mechanism.axes):
        m = axis.placement
        reach += math.hypot(m[3], m[7], m[11]) if number else 0.0
        reach += max(abs(axis.low), abs(axis.high)) if axis.slides else 0.0
    origin = mechanism.axes[0].placement if mechanism.axes else goal
    return math.dist((origin[3], origin[7], origin[11]), (goal[3], goal[7], goal[11])) > reach + CLOSE_MM


def _starting_point(axes: Sequence[Axis], number: int) -> list[float]:
    """Return a point of the Halton sequence within the limits."""
    point = []
    for index, axis in enumerate(axes):
        base = _PRIMES[index % len(_PRIMES)]
        fraction, weight, rest = 0.0, 1.0, number
        while rest:
            weight /= base
            fraction += weight * (rest % base)
            rest //= base
        reach = 1000.0 if axis.slides else _FREE_RANGE
        low, high = max(axis.low, -reach), min(axis.high, reach)
        if low > high:  # the limits are outside of the usual range
            low, high = axis.low, axis.high
        point.append(low + fraction * (high - low))
    return point


def _iterate(mechanism: Mechanism, goal: Flat, start: Sequence[float]) -> Iterator[list[float] | None]:
    values = [max(axis.low, min(axis.high, value)) for axis, value in zip(mechanism.axes, start, strict=True)]
    best, since = math.inf, 0
    for _ in range(_STEPS):
        current, columns = mechanism.jacobian(values)
        turn = rotation_between(current, goal)
        offset = (goal[3] - current[3], goal[7] - current[7], goal[11] - current[11])
        if sum(part * part for part in offset) < FINE_MM**2 and sum(part * part for part in turn) < FINE_RAD**2:
            yield values
            return
        size = sum(part * part for part in offset) + sum((part * _MM_PER_RADIAN) ** 2 for part in turn)
        best, since = (size, 0) if size < 0.98 * best else (best, since + 1)
        if since > _PATIENCE:
            break
        missing = [*offset, *(part * _MM_PER_RADIAN for part in turn)]
        rows = [
            (100 * a, 100 * b, 100 * c, 0.0, 0.0, 0.0)  # a step of 1 is 100 mm
            if axis.slides
            else (a, b, c, d * _MM_PER_RADIAN, e * _MM_PER_RADIAN, f * _MM_PER_RADIAN)
            for axis, (a, b, c, d, e, f) in zip(mechanism.axes, columns, strict=True)
        ]
        weights = solve(_normal(rows, min(_DAMPING, _FADING * size + _LEAST_DAMPING)), missing)
        for index, (row, axis) in enumerate(zip(rows, mechanism.axes, strict=True)):
            step = max(-_MAX_STEP, min(_MAX_STEP, sum(a * b for a, b in zip(row, weights, strict=True))))
            values[index] = max(axis.low, min(axis.high, values[index] + (100 * step if axis.slides else step)))
        yield None
    offset_mm, angle = deviation(mechanism.output(values), goal)
    if offset_mm < CLOSE_MM and angle < CLOSE_RAD:
        yield values


def _normal(rows: Sequence[tuple[float, ...]], damping: float) -> list[list[float]]:
    square = [[0.0] * 6 for _ in range(6)]
    for row in rows:
        for i, a in enumerate(row):
            if a:
                line = square[i]
                for j, b in enumerate(row):
                    line[j] += a * b
    for i in range(6):
        square[i][i] += damping
    return square


def solve(matrix: Sequence[Sequence[float]], vector: Sequence[float]) -> list[float]:
    """Solve a system of equations whose matrix is positive definite, by elimination with pivoting."""
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
