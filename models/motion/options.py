"""Reads what a request of the motion service may contain: options, constraints, and sizes. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine import MotionConstraints, WorldState
from models.planner.problem import MAX_MARGIN, MAX_SECONDS, MAX_SOLIDS, Constraints
from schema import ErrorKind, MachineError

MAX_TRANSFORMS: Final = 200  # frames of a request
MAX_NAME: Final = 200  # characters of the name of a frame or shape
MAX_PAIRS: Final = 1000  # that may touch
LINE_MM: Final = 1.0  # tolerances of a line without any
LINE_DEGREES: Final = 2.0
ORIENTATION_DEGREES: Final = 5.0

MARGIN: Final = "collision_buffer_mm"
SECONDS: Final = "timeout"
SEED: Final = "rseed"
SPEED: Final = "max_vel_degs_per_sec"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a plan."""

    margin: float
    seconds: float
    seed: int
    speed: float | None = None  # of every rotating joint, degrees per second


def options_of(extra: Mapping[str, Any] | None, default: Options) -> Options:
    """Return the options in `extra`; keys that are not known are ignored, as in every call."""
    values = extra or {}
    speed = _number(values, SPEED, 0.1, 10_000.0, math.nan)
    return Options(
        _number(values, MARGIN, 0.0, MAX_MARGIN, default.margin),
        _number(values, SECONDS, 0.1, MAX_SECONDS, default.seconds),
        int(_number(values, SEED, 0, 2**31 - 1, default.seed)) or 1,
        None if math.isnan(speed) else speed,
    )


def _number(values: Mapping[str, Any], key: str, low: float, high: float, default: float) -> float:
    value = values.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise MachineError(
            f"extra.{key} is {str(value)[:40]}", kind=ErrorKind.INVALID, remedy=f"use a number from {low:g} to {high:g}"
        )
    return float(value)


def constraints_of(constraints: MotionConstraints, length: float, angle: float) -> Constraints:
    """Return the constraints of a motion over `length` (mm) and `angle` (radians); the strictest of several apply."""
    lines: list[float] = []
    rotations: list[float] = []
    for number, linear in enumerate(constraints.linear_constraint):
        where = f"constraints.linear_constraint.{number}"
        lines.append(_tolerance(linear.line_tolerance_mm, LINE_MM, f"{where}.line_tolerance_mm"))
        rotations.append(
            math.radians(
                _tolerance(linear.orientation_tolerance_degs, LINE_DEGREES, f"{where}.orientation_tolerance_degs")
            )
        )
    for number, relative in enumerate(constraints.pseudolinear_constraint):
        where = f"constraints.pseudolinear_constraint.{number}"
        factor = _tolerance(relative.line_tolerance_factor, 0.0, f"{where}.line_tolerance_factor")
        turn = _tolerance(relative.orientation_tolerance_factor, 0.0, f"{where}.orientation_tolerance_factor")
        lines.append(max(LINE_MM, factor * length))
        rotations.append(max(math.radians(LINE_DEGREES), turn * angle))
    ignore_roll = False
    for number, orientation in enumerate(constraints.orientation_constraint):
        where = f"constraints.orientation_constraint.{number}.orientation_tolerance_degs"
        tolerance = _tolerance(orientation.orientation_tolerance_degs, ORIENTATION_DEGREES, where)
        rotations.append(math.radians(tolerance))
        ignore_roll = bool(orientation.ignore_theta)
    if lines:
        ignore_roll = False
    return Constraints(min(lines, default=None), min(rotations, default=None), ignore_roll)


def _tolerance(value: float | None, default: float, where: str) -> float:
    if not value:
        return default
    if not 0 < value <= 1e6:
        raise MachineError(f"{where} is {value:g}", kind=ErrorKind.INVALID, remedy="use a number above 0")
    return value


def allowed_of(constraints: MotionConstraints) -> list[tuple[str, str]]:
    """Return the pairs of names that may touch."""
    pairs = [(each.frame1, each.frame2) for row in constraints.collision_specification for each in row.allows]
    if len(pairs) > MAX_PAIRS:
        raise MachineError(
            f"{len(pairs)} pairs that may touch are too many",
            kind=ErrorKind.EXHAUSTED,
            remedy=f"use at most {MAX_PAIRS}",
        )
    return pairs


def check_size(world: WorldState) -> None:
    """Raise EXHAUSTED for too many obstacles or frames, and INVALID for a name that is too long."""
    count = sum(len(group.geometries) for group in world.obstacles)
    if count > MAX_SOLIDS:
        raise MachineError(
            f"{count} obstacles are too many", kind=ErrorKind.EXHAUSTED, remedy=f"use at most {MAX_SOLIDS}"
        )
    check_transforms(len(world.transforms))
    names = [transform.reference_frame for transform in world.transforms]
    names += [transform.pose_in_observer_frame.reference_frame for transform in world.transforms]
    names += [group.reference_frame for group in world.obstacles]
    names += [shape.label for group in world.obstacles for shape in group.geometries]
    for name in names:
        if len(name) > MAX_NAME:
            raise MachineError(f"the name {name[:20]!r}... has more than {MAX_NAME} characters", kind=ErrorKind.INVALID)


def check_transforms(count: int) -> None:
    """Raise EXHAUSTED for too many frames of a request."""
    if count > MAX_TRANSFORMS:
        raise MachineError(
            f"{count} transforms are too many", kind=ErrorKind.EXHAUSTED, remedy=f"use at most {MAX_TRANSFORMS}"
        )
