"""Power sensor `ina226`: an INA226 on an I2C bus, which measures voltage, current through a shunt, and power."""

from __future__ import annotations

from typing import ClassVar

from catalogue.chips.ina226 import Ina226Config
from hal.chips.ina2xx import Ina226 as Chip
from hal.registers import Registers
from runtime.engine.resource import Attributes
from runtime.models.chips.common.ina2xx import InaPowerSensor


class Ina226(InaPowerSensor[Chip]):
    """Measures 0 to 36 V at the pin VBUS in steps of 1.25 mV. The shunt limits the accuracy of current and power."""

    Config: ClassVar[type[Attributes]] = Ina226Config

    def chip_of(self, registers: Registers) -> Chip:
        """Create the driver of the chip."""
        config: Ina226Config = self.attributes
        return Chip(registers, config.shunt_ohms, config.max_current_a, config.samples)
