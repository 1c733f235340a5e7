"""Sensor `sht3x`: temperature and humidity by an SHT30, SHT31 or SHT35 on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from hal.chips import sht3x
from hal.registers import Registers
from runtime.builtin.chips.device import I2cAttributes, I2cDevice
from runtime.components.sensor import Sensor
from runtime.resource import Attributes, Extra, Value


class Sht3xConfig(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an SHT3x."""

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x44"  # 0x44 or 0x45, by the pin ADDR


class Sht3x(I2cDevice[sht3x.Sht3x], Sensor):
    """Readings `temperature_c` and `relative_humidity_pct`, measured when asked; check sums are checked."""

    Config: ClassVar[type[Attributes]] = Sht3xConfig

    def chip_of(self, registers: Registers) -> sht3x.Sht3x:
        """An SHT3x."""
        return sht3x.Sht3x(registers)

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Measure."""
        async with self.chip() as chip:
            temperature, humidity = await chip.measure()
        return {"temperature_c": temperature, "relative_humidity_pct": humidity}
