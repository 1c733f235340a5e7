"""Servo: turns to an angle and holds it."""

from __future__ import annotations

from typing import ClassVar

from engine.resource import Actuator, Component, Extra
from schema import API


class Servo(Actuator, Component):
    """A motor that turns to an angle and holds it."""

    API: ClassVar[API] = API("rdk", "component", "servo")

    async def move(self, angle_deg: int, *, extra: Extra = None) -> None:
        """Turn to an angle (degrees, 0 or more; the model documents the range). Cancel to stop."""
        raise NotImplementedError

    async def get_position(self, *, extra: Extra = None) -> int:
        """Return the angle (degrees)."""
        raise NotImplementedError
