"""Base: the wheels, tracks or legs that carry a machine about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from runtime.resource import Actuator, Component, Extra
from schema.geometry import Vector3
from schema.names import API


@dataclass(frozen=True, slots=True)
class BaseProperties:
    """Dimensions in metres; 0 where it does not apply."""

    width_meters: float = 0.0
    turning_radius_meters: float = 0.0
    wheel_circumference_meters: float = 0.0


class Base(Actuator, Component):
    """Something that drives. Forward is +y, left turns are positive about z."""

    API: ClassVar[API] = API("rdk", "component", "base")

    async def move_straight(self, distance_mm: int, mm_per_sec: float, *, extra: Extra = None) -> None:
        """Drive `distance_mm`; the sign of the product is the direction. Returns when there; cancelling stops it."""
        raise NotImplementedError

    async def spin(self, angle_deg: float, degs_per_sec: float, *, extra: Extra = None) -> None:
        """Turn on the spot by `angle_deg`, left if the product is positive. Returns when there; cancelling stops it."""
        raise NotImplementedError

    async def set_power(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        """Apply power, each from -1 to 1: `linear.y` forward, `angular.z` to the left, until told otherwise."""
        raise NotImplementedError

    async def set_velocity(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        """Drive at `linear.y` mm/s forward while turning `angular.z` degrees/s to the left, until told otherwise."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> BaseProperties:
        """Width, turning radius and wheel circumference (m)."""
        raise NotImplementedError
