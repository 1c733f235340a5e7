"""Power sensor `ina219`: voltage, current by a shunt, and power, by an INA219 on an I2C bus."""

from __future__ import annotations

from typing import ClassVar

from catalogue.chips.ina219 import Ina219Config
from hal.chips.ina2xx import Ina219 as Chip
from hal.registers import Registers
from runtime.builtin.chips.ina2xx import InaPowerSensor
from runtime.resource import Attributes


class Ina219(InaPowerSensor[Chip]):
    """Measures 0 to 26 V in steps of 4 mV; pin IN-. Power is never more exact than the shunt."""

    Config: ClassVar[type[Attributes]] = Ina219Config

    def chip_of(self, registers: Registers) -> Chip:
        """An INA219 with its shunt."""
        config: Ina219Config = self.attributes
        return Chip(registers, config.shunt_ohms, config.max_current_a, config.samples)
