"""Sensor `tmp102`: temperature by a TMP102 on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from catalogue.chips.tmp102 import Tmp102Config
from hal.chips import tmp102
from hal.registers import Registers
from runtime.builtin.chips.device import I2cDevice
from runtime.components.sensor import Sensor
from runtime.resource import Attributes, Extra, Value


class Tmp102(I2cDevice[tmp102.Tmp102], Sensor):
    """Reading `temperature_c`, -55 to 150 in steps of 0.0625, measured 8 times a second."""

    Config: ClassVar[type[Attributes]] = Tmp102Config

    def chip_of(self, registers: Registers) -> tmp102.Tmp102:
        """A TMP102."""
        return tmp102.Tmp102(registers)

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """The last conversion."""
        async with self.chip() as chip:
            return {"temperature_c": await chip.temperature()}
