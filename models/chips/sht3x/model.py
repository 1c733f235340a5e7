"""Sensor `sht3x`: temperature and humidity measured by an SHT30, SHT31 or SHT35 on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from engine import Attributes, Extra, Sensor, Value, model
from hal import Registers
from models.chips.common.device import I2cDevice
from models.chips.sht3x import chip as sht3x
from models.chips.sht3x.attributes import Sht3xConfig


@model("rdk:builtin:sht3x")
class Sht3x(I2cDevice[sht3x.Sht3x], Sensor):
    """Readings `temperature_c` and `relative_humidity_pct`, measured on request; checksums are verified."""

    Config: ClassVar[type[Attributes]] = Sht3xConfig

    def chip_of(self, registers: Registers) -> sht3x.Sht3x:
        """Create the driver of the chip."""
        return sht3x.Sht3x(registers)

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Measure and return the readings."""
        async with self.chip() as chip:
            temperature, humidity = await chip.measure()
        return {"temperature_c": temperature, "relative_humidity_pct": humidity}
