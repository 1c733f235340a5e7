"""Sensor `lm75`: temperature by an LM75, or one of the chips that kept its registers, on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from hal.chips import lm75
from hal.registers import Registers
from runtime.builtin.chips.device import I2cAttributes, I2cDevice
from runtime.components.sensor import Sensor
from runtime.resource import Attributes, Extra, Value


class Lm75Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an LM75."""

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x48"  # 0x48 to 0x4f, by the pins A0 to A2
    chip: Literal["lm75", "lm75b", "tmp75", "tmp175", "tmp105", "tmp275", "ds75", "tcn75a"] = "lm75"  # which one it is


class Lm75(I2cDevice[lm75.Lm75], Sensor):
    """Reading `temperature_c`, -55 to 125 in steps of 0.5 (lm75), 0.125 (lm75b) or 0.0625 (the others)."""

    Config: ClassVar[type[Attributes]] = Lm75Config

    def chip_of(self, registers: Registers) -> lm75.Lm75:
        """The variant that is configured."""
        return lm75.Lm75(registers, lm75.VARIANTS[self.attributes.chip])

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """The last conversion."""
        async with self.chip() as chip:
            return {"temperature_c": await chip.temperature()}
