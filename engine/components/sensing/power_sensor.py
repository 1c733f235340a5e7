"""Power sensor: measures voltage, current and power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from engine.components.sensing.sensor import Sensor
from engine.resource import Extra, Unsupported
from schema import API


@dataclass(frozen=True, slots=True)
class Voltage:
    """A voltage, AC or DC."""

    volts: float
    is_ac: bool = False


@dataclass(frozen=True, slots=True)
class Current:
    """A current, AC or DC."""

    amperes: float
    is_ac: bool = False


_NOT_MEASURED = (NotImplementedError, Unsupported)


class PowerSensor(Sensor):
    """A sensor for electric power."""

    API: ClassVar[API] = API("rdk", "component", "power_sensor")

    async def get_voltage(self, *, extra: Extra = None) -> Voltage:
        """Return the voltage (V)."""
        raise NotImplementedError

    async def get_current(self, *, extra: Extra = None) -> Current:
        """Return the current (A)."""
        raise NotImplementedError

    async def get_power(self, *, extra: Extra = None) -> float:
        """Return the power (W)."""
        raise NotImplementedError

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        """Return voltage, current and power by their published names, except those that the driver does not measure."""
        readings: dict[str, Any] = {}
        try:
            voltage = await self.get_voltage(extra=extra)
            readings |= {"volts": voltage.volts, "is_ac": voltage.is_ac}
        except _NOT_MEASURED:
            pass
        try:
            current = await self.get_current(extra=extra)
            readings |= {"amps": current.amperes, "is_ac": current.is_ac}
        except _NOT_MEASURED:
            pass
        try:
            readings["watts"] = await self.get_power(extra=extra)
        except _NOT_MEASURED:
            pass
        return readings
