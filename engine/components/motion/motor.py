"""Motor: turns at a power or speed, or to a position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engine.resource import Actuator, Component, Extra
from schema import API


@dataclass(frozen=True, slots=True)
class MotorProperties:
    """Whether a motor reports its position."""

    position_reporting: bool


@dataclass(frozen=True, slots=True)
class Powered:
    """Whether power is applied, and how much: -1 (full reverse) to 1 (full forward)."""

    is_on: bool
    power_pct: float


class Motor(Actuator, Component):
    """A motor, which runs at a power or speed, or turns to a position."""

    API: ClassVar[API] = API("rdk", "component", "motor")

    async def set_power(self, power_pct: float, *, extra: Extra = None) -> None:
        """Apply power: -1 (full reverse) to 1 (full forward), until the next command."""
        raise NotImplementedError

    async def go_for(self, rpm: float, revolutions: float, *, extra: Extra = None) -> None:
        """Turn `revolutions` at `rpm`, forward if their product is positive. Returns at the end; cancel to stop."""
        raise NotImplementedError

    async def go_to(self, rpm: float, position_revolutions: float, *, extra: Extra = None) -> None:
        """Turn to a position (revolutions from zero) at the magnitude of `rpm`. Returns on arrival; cancel to stop."""
        raise NotImplementedError

    async def set_rpm(self, rpm: float, *, extra: Extra = None) -> None:
        """Turn at `rpm` (negative is reverse) until the next command."""
        raise NotImplementedError

    async def reset_zero_position(self, offset: float, *, extra: Extra = None) -> None:
        """Define the current position as `-offset` revolutions."""
        raise NotImplementedError

    async def get_position(self, *, extra: Extra = None) -> float:
        """Return the position (revolutions from zero)."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> MotorProperties:
        """Return what this motor can do."""
        raise NotImplementedError

    async def is_powered(self, *, extra: Extra = None) -> Powered:
        """Return whether power is applied now, and how much."""
        raise NotImplementedError
