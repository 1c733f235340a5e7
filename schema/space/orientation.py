"""Conversion of the orientation forms of documents to the form of poses: a direction and an angle about it.

An orientation vector (o_x, o_y, o_z, theta) is the rotation Rz(longitude) Ry(latitude) Rz(theta), where longitude and
latitude align the z axis with (o_x, o_y, o_z). Angles of `ov_degrees` are in degrees, all others in radians.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from schema.space.geometry import Orientation

Quaternion: TypeAlias = tuple[float, float, float, float]  # w, x, y, z

_POLE: Final = 1e-9  # closer to a pole, the longitude is undefined and taken as zero


def to_orientation(quaternion: Quaternion) -> Orientation:
    """Convert a rotation to an orientation vector; ValueError for a quaternion of length zero."""
    norm = math.hypot(*quaternion)
    if norm == 0 or not math.isfinite(norm):
        raise ValueError("all numbers are zero")
    w, x, y, z = (part / norm for part in quaternion)
    o_x, o_y, o_z = 2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)
    if math.hypot(o_x, o_y) < _POLE:
        sign = math.copysign(1.0, o_z)
        theta = sign * math.atan2(2 * (x * y + w * z) * sign, (1 - 2 * (y * y + z * z)) * sign)
        return Orientation(0.0, 0.0, sign, math.degrees(theta))
    theta = math.atan2(2 * (y * z + w * x), -2 * (x * z - w * y))
    return Orientation(o_x, o_y, o_z, math.degrees(theta))


def to_quaternion(orientation: Orientation) -> Quaternion:
    """Convert an orientation vector of any length to a rotation; ValueError for length zero."""
    norm = math.hypot(orientation.o_x, orientation.o_y, orientation.o_z)
    if norm == 0 or not math.isfinite(norm):
        raise ValueError("o_x, o_y and o_z are all zero")
    around = math.hypot(orientation.o_x, orientation.o_y) / norm
    longitude = math.atan2(orientation.o_y, orientation.o_x) if around >= _POLE else 0.0
    latitude = math.atan2(around, orientation.o_z / norm)
    return _multiply(
        _multiply(_about_z(longitude), (math.cos(latitude / 2), 0.0, math.sin(latitude / 2), 0.0)),
        _about_z(math.radians(orientation.theta)),
    )


def _about_z(angle: float) -> Quaternion:
    return math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)


def _multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


def _vector_degrees(x: float, y: float, z: float, th: float) -> Quaternion:
    return to_quaternion(Orientation(x, y, z, th))


def _vector_radians(x: float, y: float, z: float, th: float) -> Quaternion:
    return to_quaternion(Orientation(x, y, z, math.degrees(th)))


def _axis_angles(x: float, y: float, z: float, th: float) -> Quaternion:
    norm = math.hypot(x, y, z)
    if norm == 0 or not math.isfinite(norm):
        raise ValueError("x, y and z are all zero")
    scale = math.sin(th / 2) / norm
    return math.cos(th / 2), x * scale, y * scale, z * scale


def _euler_angles(roll: float, pitch: float, yaw: float) -> Quaternion:
    about_x = (math.cos(roll / 2), math.sin(roll / 2), 0.0, 0.0)
    about_y = (math.cos(pitch / 2), 0.0, math.sin(pitch / 2), 0.0)
    return _multiply(_multiply(_about_z(yaw), about_y), about_x)


def _quaternion(w: float, x: float, y: float, z: float) -> Quaternion:
    return w, x, y, z


FORMS: Final[Mapping[str, tuple[tuple[str, ...], Callable[..., Quaternion]]]] = {
    "ov_degrees": (("x", "y", "z", "th"), _vector_degrees),
    "ov_radians": (("x", "y", "z", "th"), _vector_radians),
    "axis_angles": (("x", "y", "z", "th"), _axis_angles),
    "euler_angles": (("roll", "pitch", "yaw"), _euler_angles),
    "quaternion": (("w", "x", "y", "z"), _quaternion),
}
"""Keys of an orientation's `value`, and their conversion, by `type`. A missing key is zero."""
