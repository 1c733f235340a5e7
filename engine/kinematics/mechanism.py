"""A chain of joints in the form in which it is computed: one placement and one axis for each joint. Pure.

Body 0 is what the chain is mounted on, and body i moves with joint i. Joint positions are in radians or mm here, and
transforms are twelve numbers, the rows of a rotation and a translation (mm), because that is several times as fast in
plain Python as nested tuples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from engine.components.motion.kinematics import JointType
from engine.geometry.spatial import Transform, Vector, length, scale
from engine.geometry.sva import Chain, Joint, Link

Flat: TypeAlias = tuple[float, ...]
"""Twelve numbers: r00 r01 r02 x, r10 r11 r12 y, r20 r21 r22 z."""

IDENTITY: Final[Flat] = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
WHOLE_TURN: Final = 2 * math.pi


@dataclass(frozen=True, slots=True)
class Axis:
    """A joint: where it is in the body before it, its unit axis there, and its limits (radians or mm)."""

    name: str
    placement: Flat
    axis: Vector
    slides: bool
    low: float
    high: float

    @property
    def turns_freely(self) -> bool:
        """Whether positions that differ by whole turns are the same place, and more than one is within the limits."""
        return not self.slides and self.high - self.low >= WHOLE_TURN


@dataclass(frozen=True, slots=True)
class Mechanism:
    """Joints in order, base first, and the transform from the last body to the output."""

    axes: tuple[Axis, ...]
    tip: Flat = IDENTITY

    def bodies(self, values: Sequence[float]) -> list[Flat]:
        """Return the transform of each body, body 0 first."""
        current = IDENTITY
        frames = [current]
        for axis, value in zip(self.axes, values, strict=True):
            current = after_joint(compose(current, axis.placement), axis, value)
            frames.append(current)
        return frames

    def output(self, values: Sequence[float]) -> Flat:
        """Return the transform of the output."""
        return compose(self.bodies(values)[-1], self.tip)

    def jacobian(self, values: Sequence[float]) -> tuple[Flat, list[tuple[float, ...]]]:
        """Return the output, and for each joint the velocity (mm) and the rotation of the output for a unit of it."""
        current, lines = IDENTITY, []
        for axis, value in zip(self.axes, values, strict=True):
            current = compose(current, axis.placement)
            lines.append((_turned(current, axis.axis), (current[3], current[7], current[11])))
            current = after_joint(current, axis, value)
        output = compose(current, self.tip)
        end = (output[3], output[7], output[11])
        columns: list[tuple[float, ...]] = []
        for axis, ((x, y, z), point) in zip(self.axes, lines, strict=True):
            if axis.slides:
                columns.append((x, y, z, 0.0, 0.0, 0.0))
            else:
                a, b, c = end[0] - point[0], end[1] - point[1], end[2] - point[2]
                columns.append((y * c - z * b, z * a - x * c, x * b - y * a, x, y, z))
        return output, columns

    def to_values(self, positions: Sequence[float]) -> list[float]:
        """Convert positions in degrees or mm."""
        return [value if axis.slides else math.radians(value) for axis, value in zip(self.axes, positions, strict=True)]

    def to_positions(self, values: Sequence[float]) -> list[float]:
        """Convert values in radians or mm to degrees or mm."""
        return [value if axis.slides else math.degrees(value) for axis, value in zip(self.axes, values, strict=True)]


def mechanism_of(chain: Chain) -> Mechanism:
    """Return a chain in this form."""
    axes: list[Axis] = []
    placement = IDENTITY
    for part in chain.parts:
        if isinstance(part, Link):
            placement = compose(placement, flat(part.transform))
            continue
        axes.append(_axis(part, placement))
        placement = IDENTITY
    return Mechanism(tuple(axes), placement)


def _axis(joint: Joint, placement: Flat) -> Axis:
    slides = joint.type is JointType.PRISMATIC
    low, high = (joint.low, joint.high) if slides else (math.radians(joint.low), math.radians(joint.high))
    return Axis(joint.id, placement, scale(joint.axis, 1 / length(joint.axis)), slides, low, high)


def flat(transform: Transform) -> Flat:
    """Return the twelve numbers of a transform."""
    (a, b, c), (x, y, z) = transform
    return (*a, x, *b, y, *c, z)


def transform_of(m: Flat) -> Transform:
    """Return the transform of twelve numbers."""
    rotation = ((m[0], m[1], m[2]), (m[4], m[5], m[6]), (m[8], m[9], m[10]))
    return Transform(rotation, (m[3], m[7], m[11]))


def compose(a: Flat, b: Flat) -> Flat:
    """Return `b`, which is given in the frame `a`, in the outer frame."""
    a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11 = a
    b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11 = b
    return (
        a0 * b0 + a1 * b4 + a2 * b8,
        a0 * b1 + a1 * b5 + a2 * b9,
        a0 * b2 + a1 * b6 + a2 * b10,
        a0 * b3 + a1 * b7 + a2 * b11 + a3,
        a4 * b0 + a5 * b4 + a6 * b8,
        a4 * b1 + a5 * b5 + a6 * b9,
        a4 * b2 + a5 * b6 + a6 * b10,
        a4 * b3 + a5 * b7 + a6 * b11 + a7,
        a8 * b0 + a9 * b4 + a10 * b8,
        a8 * b1 + a9 * b5 + a10 * b9,
        a8 * b2 + a9 * b6 + a10 * b10,
        a8 * b3 + a9 * b7 + a10 * b11 + a11,
    )


def inverse_of(m: Flat) -> Flat:
    """Return the inverse of a transform."""
    x, y, z = m[3], m[7], m[11]
    return (
        m[0],
        m[4],
        m[8],
        -(m[0] * x + m[4] * y + m[8] * z),
        m[1],
        m[5],
        m[9],
        -(m[1] * x + m[5] * y + m[9] * z),
        m[2],
        m[6],
        m[10],
        -(m[2] * x + m[6] * y + m[10] * z),
    )


def after_joint(m: Flat, axis: Axis, value: float) -> Flat:
    """Return the frame behind a joint whose frame is `m`, with the joint at `value`."""
    x, y, z = axis.axis
    if axis.slides:
        return compose(m, (1.0, 0.0, 0.0, x * value, 0.0, 1.0, 0.0, y * value, 0.0, 0.0, 1.0, z * value))
    c, s = math.cos(value), math.sin(value)
    d = 1 - c
    turned = (
        c + x * x * d,
        x * y * d - z * s,
        x * z * d + y * s,
        0.0,
        y * x * d + z * s,
        c + y * y * d,
        y * z * d - x * s,
        0.0,
        z * x * d - y * s,
        z * y * d + x * s,
        c + z * z * d,
        0.0,
    )
    return compose(m, turned)


def _turned(m: Flat, v: Vector) -> Vector:
    return (
        m[0] * v[0] + m[1] * v[1] + m[2] * v[2],
        m[4] * v[0] + m[5] * v[1] + m[6] * v[2],
        m[8] * v[0] + m[9] * v[1] + m[10] * v[2],
    )


def rotation_between(a: Flat, b: Flat) -> Vector:
    """Return the axis of the rotation from `a` to `b`, in the outer frame, times its angle in radians (0 to pi)."""
    r = [
        b[4 * i] * a[4 * j] + b[4 * i + 1] * a[4 * j + 1] + b[4 * i + 2] * a[4 * j + 2]
        for i in range(3)
        for j in range(3)
    ]
    cosine = max(-1.0, min(1.0, (r[0] + r[4] + r[8] - 1) / 2))
    x, y, z = r[7] - r[5], r[2] - r[6], r[3] - r[1]
    sine = math.sqrt(x * x + y * y + z * z) / 2
    if sine > 1e-7:
        factor = math.atan2(sine, cosine) / (2 * sine)
        return (x * factor, y * factor, z * factor)
    if cosine > 0:
        return (x / 2, y / 2, z / 2)
    # Half a turn: the columns of r + 1 are multiples of the axis; the longest is not zero.
    columns = [[r[3 * i + j] + (i == j) for i in range(3)] for j in range(3)]
    x, y, z = max(columns, key=lambda column: sum(part * part for part in column))
    factor = math.pi / math.sqrt(x * x + y * y + z * z)
    return (x * factor, y * factor, z * factor)
