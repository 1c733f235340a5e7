"""Rotations and rigid transforms in plain Python, sufficient for an arm. Pure."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

from schema import Orientation, Pose, to_quaternion

Vector: TypeAlias = tuple[float, float, float]
Matrix: TypeAlias = tuple[Vector, Vector, Vector]

IDENTITY: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def apply(m: Matrix, v: Vector) -> Vector:
    """Return the product m v."""
    return (
        m[0][0] * v[0] + m[0][1] * v[1] + m[0][2] * v[2],
        m[1][0] * v[0] + m[1][1] * v[1] + m[1][2] * v[2],
        m[2][0] * v[0] + m[2][1] * v[1] + m[2][2] * v[2],
    )


def transpose(m: Matrix) -> Matrix:
    """Return the transpose, which is the inverse of a rotation."""
    return (
        (m[0][0], m[1][0], m[2][0]),
        (m[0][1], m[1][1], m[2][1]),
        (m[0][2], m[1][2], m[2][2]),
    )


def multiply(a: Matrix, b: Matrix) -> Matrix:
    """Return the product a b."""
    return transpose((apply(a, column(b, 0)), apply(a, column(b, 1)), apply(a, column(b, 2))))


def column(m: Matrix, i: int) -> Vector:
    """Return column i, which is the image of the i-th axis."""
    return (m[0][i], m[1][i], m[2][i])


def add(a: Vector, b: Vector) -> Vector:
    """Return a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def subtract(a: Vector, b: Vector) -> Vector:
    """Return a - b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def scale(v: Vector, factor: float) -> Vector:
    """Return v times `factor`."""
    return (v[0] * factor, v[1] * factor, v[2] * factor)


def cross(a: Vector, b: Vector) -> Vector:
    """Return the cross product a x b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def length(v: Vector) -> float:
    """Return the Euclidean length."""
    return math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])


def about(axis: Vector, angle: float) -> Matrix:
    """Return the rotation by `angle` (radians) about `axis`, which may have any length."""
    size = length(axis)
    if size == 0:
        return IDENTITY
    x, y, z = scale(axis, 1 / size)
    c, s = math.cos(angle), math.sin(angle)
    d = 1 - c
    return (
        (c + x * x * d, x * y * d - z * s, x * z * d + y * s),
        (y * x * d + z * s, c + y * y * d, y * z * d - x * s),
        (z * x * d - y * s, z * y * d + x * s, c + z * z * d),
    )


def rotation_vector(m: Matrix) -> Vector:
    """Return the axis of a rotation times its angle in radians (0 to pi)."""
    cosine = max(-1.0, min(1.0, (m[0][0] + m[1][1] + m[2][2] - 1) / 2))
    angle = math.acos(cosine)
    sine_axis = (m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1])
    if length(sine_axis) > 1e-9:
        return scale(sine_axis, angle / length(sine_axis))
    if cosine > 0:
        return (0.0, 0.0, 0.0)
    # Half a turn: the columns of m + 1 are multiples of the axis; the longest is not zero.
    columns = [
        column(((m[0][0] + 1, *m[0][1:]), (m[1][0], m[1][1] + 1, m[1][2]), (*m[2][:2], m[2][2] + 1)), i)
        for i in range(3)
    ]
    axis = max(columns, key=length)
    return scale(axis, math.pi / length(axis))


def from_quaternion(w: float, x: float, y: float, z: float) -> Matrix:
    """Return the rotation of a quaternion of any length except 0."""
    return about((x, y, z), 2 * math.atan2(math.hypot(x, y, z), w))


def from_orientation(orientation: Orientation) -> Matrix:
    """Return the rotation of an orientation vector; a zero vector, as in an unset message, means the z axis."""
    if (orientation.o_x, orientation.o_y, orientation.o_z) == (0, 0, 0):
        orientation = Orientation(theta=orientation.theta)
    return from_quaternion(*to_quaternion(orientation))


def to_orientation(m: Matrix) -> Orientation:
    """Return the orientation vector of a rotation; theta is in degrees."""
    x, y, z = column(m, 2)
    rest = multiply(transpose(from_orientation(Orientation(x, y, z, 0.0))), m)
    return Orientation(x, y, z, math.degrees(math.atan2(rest[1][0], rest[0][0])))


class Transform(NamedTuple):
    """A rotation followed by a translation (mm)."""

    rotation: Matrix = IDENTITY
    translation: Vector = (0.0, 0.0, 0.0)

    def then(self, other: Transform) -> Transform:
        """Return `other`, which is given in this frame, in the outer frame."""
        return Transform(
            multiply(self.rotation, other.rotation), add(self.translation, apply(self.rotation, other.translation))
        )

    def inverse(self) -> Transform:
        """Return the inverse."""
        back = transpose(self.rotation)
        return Transform(back, scale(apply(back, self.translation), -1.0))

    def pose(self) -> Pose:
        """Return the pose message."""
        o = to_orientation(self.rotation)
        return Pose(*self.translation, o.o_x, o.o_y, o.o_z, o.theta)

    @classmethod
    def of(cls, pose: Pose) -> Transform:
        """Create a transform from a pose message."""
        turned = Orientation(pose.o_x, pose.o_y, pose.o_z, pose.theta)
        return cls(from_orientation(turned), (pose.x, pose.y, pose.z))
