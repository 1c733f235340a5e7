"""Sensor `sht3x`: temperature and humidity by an SHT30, SHT31 or SHT35 on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from catalogue.chips.sht3x import Sht3xConfig
from hal.chips import sht3x
from hal.registers import Registers
from runtime.builtin.chips.device import I2cDevice
from runtime.components.sensor import Sensor
from runtime.resource import Attributes, Extra, Value


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
