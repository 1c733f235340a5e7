"""Power sensor `ina226`: voltage, current by a shunt, and power, by an INA226 on an I2C bus."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from hal.chips.ina2xx import INA226, calibrate
from hal.chips.ina2xx import Ina226 as Chip
from hal.registers import Registers
from runtime.builtin.chips.device import I2cAttributes
from runtime.builtin.chips.ina2xx import InaPowerSensor
from runtime.resource import Attributes


class Ina226Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an INA226."""

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x40"  # 0x40 to 0x4f, by the pins A0 and A1
    shunt_ohms: Annotated[float, msgspec.Meta(gt=0)] = 0.1  # resistance of the shunt
    max_current_a: Annotated[float, msgspec.Meta(gt=0)] = 0.8  # largest current expected, at most 0.08 V / shunt_ohms
    samples: Literal[1, 4, 16, 64, 128, 256, 512, 1024] = 4  # averaged; each takes 1.1 ms for each quantity

    def __post_init__(self) -> None:
        super().__post_init__()
        calibrate(INA226, self.shunt_ohms, self.max_current_a)


class Ina226(InaPowerSensor[Chip]):
    """Measures 0 to 36 V in steps of 1.25 mV; pin VBUS. Power is never more exact than the shunt."""

    Config: ClassVar[type[Attributes]] = Ina226Config

    def chip_of(self, registers: Registers) -> Chip:
        """An INA226 with its shunt."""
        config: Ina226Config = self.attributes
        return Chip(registers, config.shunt_ohms, config.max_current_a, config.samples)
