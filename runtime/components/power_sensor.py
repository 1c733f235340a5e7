"""Power sensor: voltage, current and power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runtime.components.sensor import Sensor
from runtime.resource import Extra, Unsupported
from schema.names import API


@dataclass(frozen=True, slots=True)
class Voltage:
    """Volts, alternating or direct."""

    volts: float
    is_ac: bool = False


@dataclass(frozen=True, slots=True)
class Current:
    """Amperes, alternating or direct."""

    amperes: float
    is_ac: bool = False


_NOT_MEASURED = (NotImplementedError, Unsupported)


class PowerSensor(Sensor):
    """Something that measures electric power."""

    API: ClassVar[API] = API("rdk", "component", "power_sensor")

    async def get_voltage(self, *, extra: Extra = None) -> Voltage:
        """Voltage (V)."""
        raise NotImplementedError

    async def get_current(self, *, extra: Extra = None) -> Current:
        """Current (A)."""
        raise NotImplementedError

    async def get_power(self, *, extra: Extra = None) -> float:
        """Power (W)."""
        raise NotImplementedError

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        """Voltage, current and power, by the names clients know; what the driver does not measure is left out."""
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
