"""Sensor `tmp102`: temperature measured by a TMP102 on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from engine import Attributes, Extra, Sensor, Value, model
from hal import Registers
from models.chips.common.device import I2cDevice
from models.chips.tmp102 import chip as tmp102
from models.chips.tmp102.attributes import Tmp102Config


@model("rdk:builtin:tmp102")
class Tmp102(I2cDevice[tmp102.Tmp102], Sensor):
    """Reading `temperature_c`: -55 to 150 in steps of 0.0625, measured 8 times per second."""

    Config: ClassVar[type[Attributes]] = Tmp102Config

    def chip_of(self, registers: Registers) -> tmp102.Tmp102:
        """Create the driver of the chip."""
        return tmp102.Tmp102(registers)

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Return the result of the last conversion."""
        async with self.chip() as chip:
            return {"temperature_c": await chip.temperature()}
