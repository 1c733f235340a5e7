"""Power sensor `ina226`: voltage, current by a shunt, and power, by an INA226 on an I2C bus."""

from __future__ import annotations

from typing import ClassVar

from catalogue.chips.ina226 import Ina226Config
from hal.chips.ina2xx import Ina226 as Chip
from hal.registers import Registers
from runtime.builtin.chips.ina2xx import InaPowerSensor
from runtime.resource import Attributes


class Ina226(InaPowerSensor[Chip]):
    """Measures 0 to 36 V in steps of 1.25 mV; pin VBUS. Power is never more exact than the shunt."""

    Config: ClassVar[type[Attributes]] = Ina226Config

    def chip_of(self, registers: Registers) -> Chip:
        """An INA226 with its shunt."""
        config: Ina226Config = self.attributes
        return Chip(registers, config.shunt_ohms, config.max_current_a, config.samples)
