"""Base: the wheels, tracks or legs that a machine drives on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engine.resource import Actuator, Component, Extra
from schema import API, Vector3


@dataclass(frozen=True, slots=True)
class BaseProperties:
    """Dimensions in metres; 0 if not applicable."""

    width_meters: float = 0.0
    turning_radius_meters: float = 0.0
    wheel_circumference_meters: float = 0.0


class Base(Actuator, Component):
    """A mobile base. Forward is +y; left turns are positive about z."""

    API: ClassVar[API] = API("rdk", "component", "base")

    async def move_straight(self, distance_mm: int, mm_per_sec: float, *, extra: Extra = None) -> None:
        """Drive straight, forward if distance times speed is positive. Returns on arrival; cancel to stop."""
        raise NotImplementedError

    async def spin(self, angle_deg: float, degs_per_sec: float, *, extra: Extra = None) -> None:
        """Turn on the spot, left if angle times speed is positive. Returns when done; cancel to stop."""
        raise NotImplementedError

    async def set_power(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        """Apply forward power `linear.y` and turning power `angular.z` (left), each -1 to 1, until the next command."""
        raise NotImplementedError

    async def set_velocity(self, linear: Vector3, angular: Vector3, *, extra: Extra = None) -> None:
        """Drive forward (`linear.y`, mm/s) and turn left (`angular.z`, degrees/s) until the next command."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> BaseProperties:
        """Return width, turning radius and wheel circumference (m)."""
        raise NotImplementedError
