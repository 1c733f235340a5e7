"""Power sensors `ina219` and `ina226`: what the two models share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from hal.chips.ina2xx import Ina2xx
from runtime.builtin.chips.device import I2cDevice
from runtime.components.power_sensor import Current, PowerSensor, Voltage
from runtime.resource import Extra

InaT = TypeVar("InaT", bound=Ina2xx)


class InaPowerSensor(I2cDevice[InaT], PowerSensor):
    """Direct current. What flows out of the load towards the supply is negative, current and power alike."""

    async def get_voltage(self, *, extra: Extra = None) -> Voltage:
        """At the load."""
        async with self.chip() as chip:
            return Voltage(await chip.bus_voltage())

    async def get_current(self, *, extra: Extra = None) -> Current:
        """Through the shunt. PRECONDITION if it is more than the settings allow."""
        async with self.chip() as chip:
            return Current(await chip.current())

    async def get_power(self, *, extra: Extra = None) -> float:
        """As the chip multiplies it, with the sign of the current."""
        async with self.chip() as chip:
            power = await chip.power()
            return -power if await chip.current() < 0 else power

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        """Voltage, current and power, and `shunt_v`, the voltage across the shunt."""
        readings = await super().get_readings(extra=extra)
        async with self.chip() as chip:
            return {**readings, "shunt_v": await chip.shunt_voltage()}
