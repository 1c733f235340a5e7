"""Power sensor `ina219`: voltage, current by a shunt, and power, by an INA219 on an I2C bus."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from hal.chips.ina2xx import INA219, calibrate
from hal.chips.ina2xx import Ina219 as Chip
from hal.registers import Registers
from runtime.builtin.chips.device import I2cAttributes
from runtime.builtin.chips.ina2xx import InaPowerSensor
from runtime.resource import Attributes


class Ina219Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an INA219."""

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x40"  # 0x40 to 0x4f, by the pins A0 and A1
    shunt_ohms: Annotated[float, msgspec.Meta(gt=0)] = 0.1  # resistance of the shunt
    max_current_a: Annotated[float, msgspec.Meta(gt=0)] = 3.2  # largest current expected, at most 0.32 V / shunt_ohms
    samples: Literal[1, 2, 4, 8, 16, 32, 64, 128] = 8  # averaged; each takes 0.53 ms for each quantity

    def __post_init__(self) -> None:
        super().__post_init__()
        calibrate(INA219, self.shunt_ohms, self.max_current_a)


class Ina219(InaPowerSensor[Chip]):
    """Measures 0 to 26 V in steps of 4 mV; pin IN-. Power is never more exact than the shunt."""

    Config: ClassVar[type[Attributes]] = Ina219Config

    def chip_of(self, registers: Registers) -> Chip:
        """An INA219 with its shunt."""
        config: Ina219Config = self.attributes
        return Chip(registers, config.shunt_ohms, config.max_current_a, config.samples)
