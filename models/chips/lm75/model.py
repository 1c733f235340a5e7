"""Sensor `lm75`: temperature measured by an LM75 or a register-compatible chip on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from engine import Attributes, Extra, Sensor, Value, model
from hal import Registers
from models.chips.common.device import I2cDevice
from models.chips.lm75 import chip as lm75
from models.chips.lm75.attributes import Lm75Config


@model("rdk:builtin:lm75")
class Lm75(I2cDevice[lm75.Lm75], Sensor):
    """Reading `temperature_c`: -55 to 125 in steps of 0.5 (lm75), 0.125 (lm75b) or 0.0625 (the others)."""

    Config: ClassVar[type[Attributes]] = Lm75Config

    def chip_of(self, registers: Registers) -> lm75.Lm75:
        """Create the driver of the configured chip."""
        return lm75.Lm75(registers, lm75.VARIANTS[self.attributes.chip])

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Return the result of the last conversion."""
        async with self.chip() as chip:
            return {"temperature_c": await chip.temperature()}
