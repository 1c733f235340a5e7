"""Base of the power sensors `ina219` and `ina226`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from engine import Current, Extra, PowerSensor, Voltage
from hal import Registers
from hal.chips.ina2xx import Ina2xx
from runtime.models.chips.common.device import I2cDevice

if TYPE_CHECKING:
    from catalogue.chips.ina219 import Ina219Config
    from catalogue.chips.ina226 import Ina226Config


class InaPowerSensor(I2cDevice[Ina2xx], PowerSensor):
    """Direct current. Current and power are negative when they flow from the load to the supply."""

    Driver: ClassVar[type[Ina2xx]]
    """The driver of the chip."""

    def chip_of(self, registers: Registers) -> Ina2xx:
        """Create the driver of the chip."""
        config: Ina219Config | Ina226Config = self.attributes
        return self.Driver(registers, config.shunt_ohms, config.max_current_a, config.samples)

    async def get_voltage(self, *, extra: Extra = None) -> Voltage:
        """Measure the voltage at the load."""
        async with self.chip() as chip:
            return Voltage(await chip.bus_voltage())

    async def get_current(self, *, extra: Extra = None) -> Current:
        """Measure the current through the shunt. PRECONDITION if it exceeds the configured range."""
        async with self.chip() as chip:
            return Current(await chip.current())

    async def get_power(self, *, extra: Extra = None) -> float:
        """Return the power computed by the chip, with the sign of the current."""
        async with self.chip() as chip:
            power = await chip.power()
            return -power if await chip.current() < 0 else power

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        """Return voltage, current, power, and `shunt_v`, the voltage across the shunt."""
        readings = await super().get_readings(extra=extra)
        async with self.chip() as chip:
            return {**readings, "shunt_v": await chip.shunt_voltage()}
