"""Motor: turns by power, by speed or to a position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from runtime.resource import Actuator, Component, Extra
from schema.names import API


@dataclass(frozen=True, slots=True)
class MotorProperties:
    """What a motor can do."""

    position_reporting: bool


@dataclass(frozen=True, slots=True)
class Powered:
    """Whether power is applied, and how much: power_pct from -1 to 1."""

    is_on: bool
    power_pct: float


class Motor(Actuator, Component):
    """Something that turns."""

    API: ClassVar[API] = API("rdk", "component", "motor")

    async def set_power(self, power_pct: float, *, extra: Extra = None) -> None:
        """Apply power: -1 (full reverse) to 1 (full forward), until told otherwise."""
        raise NotImplementedError

    async def go_for(self, rpm: float, revolutions: float, *, extra: Extra = None) -> None:
        """Turn `revolutions` at `rpm`; the product's sign is the direction. Returns at the end; cancel to stop."""
        raise NotImplementedError

    async def go_to(self, rpm: float, position_revolutions: float, *, extra: Extra = None) -> None:
        """Turn to a position from zero (revolutions) at the magnitude of `rpm`, until there; cancel to stop."""
        raise NotImplementedError

    async def set_rpm(self, rpm: float, *, extra: Extra = None) -> None:
        """Turn at `rpm` until told otherwise; negative is reverse."""
        raise NotImplementedError

    async def reset_zero_position(self, offset: float, *, extra: Extra = None) -> None:
        """Call the present position `-offset` revolutions."""
        raise NotImplementedError

    async def get_position(self, *, extra: Extra = None) -> float:
        """Revolutions from zero."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> MotorProperties:
        """What this motor can do."""
        raise NotImplementedError

    async def is_powered(self, *, extra: Extra = None) -> Powered:
        """Whether power is applied now, and how much."""
        raise NotImplementedError
