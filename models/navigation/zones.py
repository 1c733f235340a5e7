"""Shapes of zones on the globe. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from engine import NavZone
from models.driving.plane import Plane, Point, check_geo
from models.driving.shapes import LARGEST, Shape, side
from schema import ErrorKind, GeoPoint, MachineError

KEEPOUT: Final = "keepout"
SPEED_LIMIT: Final = "speed_limit"
MAX_CORNERS: Final = 100
HELP: Final = (
    '{"type": "circle", "center": {"latitude": ..., "longitude": ...}, "radius": m}, '
    '{"type": "box", "center": ..., "width": m, "length": m, "heading": degrees}, '
    'or {"type": "polygon", "points": [{"latitude": ..., "longitude": ...}, ...]}'
)


def check_zone(zone: NavZone) -> None:
    """Raise INVALID for a zone of another type, without its speed, or with a shape that is not one."""
    if zone.type not in (KEEPOUT, SPEED_LIMIT):
        raise MachineError(
            f"{zone.type[:40]!r} is not a type of zones",
            kind=ErrorKind.INVALID,
            remedy=f"use {KEEPOUT} or {SPEED_LIMIT}",
        )
    speed = zone.max_speed
    if zone.type == SPEED_LIMIT and (speed is None or not math.isfinite(speed) or not 0.05 <= speed <= 100):
        raise MachineError(
            f"max_speed is {speed}", kind=ErrorKind.INVALID, remedy="a speed limit needs 0.05 to 100 m/s"
        )
    shape_of_zone(zone, Plane(anchor(zone.geometry)))


def anchor(geometry: Mapping[str, Any]) -> GeoPoint:
    """Return a point of a shape: its centre, or its first corner. INVALID if it has none."""
    if geometry.get("type") == "polygon":
        corners = geometry.get("points")
        return _point(corners[0] if isinstance(corners, Sequence) and corners else None, "points.0")
    return _point(geometry.get("center"), "center")


def shape_of_zone(zone: NavZone, plane: Plane) -> Shape:
    """Return the shape of a zone in a plane. INVALID if it is not a shape."""
    geometry = zone.geometry
    kind = geometry.get("type")
    if kind == "circle":
        radius = _size(geometry, "radius")
        return Shape((plane.point(_point(geometry.get("center"), "center")),), radius, zone.name)
    if kind == "box":
        middle = plane.point(_point(geometry.get("center"), "center"))
        half_x, half_y = _size(geometry, "width") / 2, _size(geometry, "length") / 2
        heading = geometry.get("heading", 0.0)
        if not isinstance(heading, (int, float)) or not math.isfinite(heading):
            _refuse("heading is not a finite number")
        cosine, sine = math.cos(math.radians(heading)), math.sin(math.radians(heading))
        corners = [
            Point(middle.x + x * cosine + y * sine, middle.y - x * sine + y * cosine)
            for x, y in ((-half_x, -half_y), (half_x, -half_y), (half_x, half_y), (-half_x, half_y))
        ]
        return Shape(tuple(corners), 0.0, zone.name)
    if kind != "polygon":
        _refuse(f"type is {str(kind)[:40]!r}")
    points = geometry.get("points")
    if not isinstance(points, Sequence) or not 3 <= len(points) <= MAX_CORNERS:
        _refuse(f"points are not 3 to {MAX_CORNERS} corners")
    return _polygon([plane.point(_point(each, f"points.{i}")) for i, each in enumerate(points)], zone.name)


def _polygon(corners: list[Point], label: str) -> Shape:
    if sum(a.x * b.y - b.x * a.y for a, b in zip(corners, corners[1:] + corners[:1], strict=True)) < 0:
        corners.reverse()
    count = len(corners)
    turned = 0.0
    for i in range(count):
        before, here, after = corners[i - 1], corners[i], corners[(i + 1) % count]
        if side(before, here, after) < 0:
            _refuse("the polygon has a notch: divide it into several zones")
        first, second = math.atan2(here.y - before.y, here.x - before.x), math.atan2(after.y - here.y, after.x - here.x)
        turned += abs(math.remainder(second - first, 2 * math.pi))
    if turned > 2.1 * math.pi:
        _refuse("the outline of the polygon crosses itself")
    return Shape(tuple(corners), 0.0, label)


def _point(value: Any, where: str) -> GeoPoint:
    latitude, longitude = (value.get(key) if isinstance(value, Mapping) else None for key in ("latitude", "longitude"))
    if not isinstance(latitude, (int, float)) or not isinstance(longitude, (int, float)):
        _refuse(f"{where} is not a point")
    point = GeoPoint(float(latitude), float(longitude))
    check_geo(point, f"geometry.{where}")
    return point


def _size(geometry: Mapping[str, Any], name: str) -> float:
    value = geometry.get(name)
    if not isinstance(value, (int, float)) or not math.isfinite(value) or not 0 < value <= LARGEST:
        _refuse(f"{name} is not above 0 and at most {LARGEST:g} m")
    return float(value)


def _refuse(reason: str) -> NoReturn:
    raise MachineError(f"geometry: {reason}", kind=ErrorKind.INVALID, remedy=f"use {HELP}")
