"""Dead reckoning: the position of a vehicle after driving an arc, also as latitude and longitude."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from schema import GeoPoint

EARTH_RADIUS: Final = 6_371_008.8  # metres: mean radius R1 of WGS 84 (IUGG)
STRAIGHT: Final = 1e-6  # radians; for smaller angles the arc length equals the chord within double precision


@dataclass(frozen=True, slots=True)
class PlanarPose:
    """A vehicle's position and heading relative to its start: x to the right, y ahead (mm), heading to the left (°)."""

    x: float = 0.0
    y: float = 0.0
    heading: float = 0.0


def after_arc(pose: PlanarPose, forward: float, angle: float) -> PlanarPose:
    """Return the exact position after an arc of length `forward` (mm) that turns by `angle` (degrees to the left)."""
    begin, turn = math.radians(pose.heading), math.radians(angle)
    half = turn / 2
    chord = forward * (math.sin(half) / half if abs(half) > STRAIGHT else 1.0)
    towards = begin + half
    return PlanarPose(pose.x - chord * math.sin(towards), pose.y + chord * math.cos(towards), pose.heading + angle)


def on_globe(origin: GeoPoint, north_heading: float, pose: PlanarPose) -> GeoPoint:
    """Convert `pose` to latitude and longitude, for a start at `origin` facing `north_heading` (degrees, clockwise).

    For short distances: the error grows with the square of the distance and is about 1 mm at 100 m.
    """
    north = math.radians(north_heading)
    east_mm = pose.x * math.cos(north) + pose.y * math.sin(north)
    north_mm = pose.y * math.cos(north) - pose.x * math.sin(north)
    latitude = origin.latitude + math.degrees(north_mm / 1000 / EARTH_RADIUS)
    parallel = EARTH_RADIUS * math.cos(math.radians(origin.latitude))
    return GeoPoint(latitude, origin.longitude + math.degrees(east_mm / 1000 / parallel))
