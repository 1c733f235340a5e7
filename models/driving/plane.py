"""A plane that touches the globe: points as metres east and north of its origin. Pure."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from schema import ErrorKind, GeoPoint, MachineError

EQUATOR: Final = 6_378_137.0  # m, WGS 84
SQUARED_ECCENTRICITY: Final = 0.00669437999014
FARTHEST: Final = 20_000.0  # m from the origin; beyond, a plane is no longer a good map
POLE: Final = 85.0  # degrees of latitude


class Point(NamedTuple):
    """A point of the plane: metres east and north."""

    x: float
    y: float

    def distance(self, other: Point) -> float:
        """Return the distance to another point."""
        return math.hypot(self.x - other.x, self.y - other.y)


def check_geo(point: GeoPoint, where: str) -> None:
    """Raise INVALID unless a point is on the globe, and not near a pole; `where` names it."""
    for name, value, limit in (("latitude", point.latitude, POLE), ("longitude", point.longitude, 180.0)):
        if not math.isfinite(value) or abs(value) > limit:
            raise MachineError(
                f"{where}: a {name} of {value:g} is out of range",
                kind=ErrorKind.INVALID,
                remedy=f"use degrees from -{limit:g} to {limit:g}",
            )


class Plane:
    """The plane that touches the globe at `origin`."""

    def __init__(self, origin: GeoPoint) -> None:
        check_geo(origin, "the position")
        self.origin = origin
        latitude = math.radians(origin.latitude)
        curvature = 1 - SQUARED_ECCENTRICITY * math.sin(latitude) ** 2
        self._north = math.radians(EQUATOR * (1 - SQUARED_ECCENTRICITY) / curvature**1.5)  # m for each degree
        self._east = math.radians(EQUATOR / math.sqrt(curvature) * math.cos(latitude))

    def point(self, geo: GeoPoint, where: str = "the point") -> Point:
        """Return a point of the globe in the plane. INVALID if it is not on the globe, or too far away."""
        check_geo(geo, where)
        east = math.remainder(geo.longitude - self.origin.longitude, 360.0)
        point = Point(east * self._east, (geo.latitude - self.origin.latitude) * self._north)
        distance = math.hypot(*point)
        if distance > FARTHEST:
            raise MachineError(
                f"{where} is {distance / 1000:.1f} km away",
                kind=ErrorKind.INVALID,
                remedy=f"choose a point within {FARTHEST / 1000:g} km",
            )
        return point

    def geo(self, point: Point) -> GeoPoint:
        """Return the point of the globe."""
        longitude = self.origin.longitude + point.x / self._east
        return GeoPoint(self.origin.latitude + point.y / self._north, math.remainder(longitude, 360.0))


def bearing(start: Point, end: Point) -> float:
    """Return the direction from a point to another, in degrees clockwise from north."""
    return math.degrees(math.atan2(end.x - start.x, end.y - start.y)) % 360.0


def turn_between(heading: float, aim: float) -> float:
    """Return the turn from a heading to another in degrees, -180 to 180; clockwise is positive."""
    return math.remainder(aim - heading, 360.0)
