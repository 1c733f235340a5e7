"""Power sensors `ina219` and `ina226` on an I2C bus, which measure voltage, current through a shunt, and power."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from engine import Attributes, Current, Extra, PowerSensor, Voltage, model
from hal import Registers
from models.chips.common.device import I2cDevice
from models.chips.ina2xx import chip as ina2xx
from models.chips.ina2xx.attributes import Ina219Config, Ina226Config
from models.chips.ina2xx.chip import Ina2xx


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


@model("rdk:builtin:ina219")
class Ina219(InaPowerSensor):
    """Measures 0 to 26 V at the pin IN- in steps of 4 mV. The shunt limits the accuracy of current and power."""

    Config: ClassVar[type[Attributes]] = Ina219Config
    Driver = ina2xx.Ina219


@model("rdk:builtin:ina226")
class Ina226(InaPowerSensor):
    """Measures 0 to 36 V at the pin VBUS in steps of 1.25 mV. The shunt limits the accuracy of current and power."""

    Config: ClassVar[type[Attributes]] = Ina226Config
    Driver = ina2xx.Ina226
