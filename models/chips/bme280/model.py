"""Sensor `bme280`: a BME280 (temperature, pressure and humidity) or BMP280 (without humidity) on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from engine import Attributes, Extra, Sensor, Value, model
from hal import Registers
from models.chips.bme280 import chip as bme280
from models.chips.bme280.attributes import Bme280Config
from models.chips.common.device import I2cDevice


@model("rdk:builtin:bme280")
class Bme280(I2cDevice[bme280.Bme280], Sensor):
    """Readings, measured on request: `temperature_c`, `pressure_pa` and, with a BME280, `relative_humidity_pct`."""

    Config: ClassVar[type[Attributes]] = Bme280Config

    def chip_of(self, registers: Registers) -> bme280.Bme280:
        """Create the driver; the chip type is detected."""
        return bme280.Bme280(registers, self.attributes.oversampling)

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Measure and return the readings."""
        async with self.chip() as chip:
            weather = await chip.measure()
        readings: dict[str, Value] = {"temperature_c": weather.temperature, "pressure_pa": weather.pressure}
        if weather.humidity is not None:
            readings["relative_humidity_pct"] = weather.humidity
        return readings
