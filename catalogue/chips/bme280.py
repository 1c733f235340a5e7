"""Attributes that `runtime.models.chips.bme280` reads."""

from __future__ import annotations

from typing import Literal

from catalogue.chips.common.device import I2cAttributes


class Bme280Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of a BME280 or BMP280. The chip type is detected."""

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x76"  # 0x76 or 0x77, set by the pin SDO
    oversampling: Literal[1, 2, 4, 8, 16] = 1  # samples per measurement; 16 take 0.11 s and have the least noise
