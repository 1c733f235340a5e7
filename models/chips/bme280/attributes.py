"""Attributes of `bme280`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

from models.chips.common.attributes import I2cAttributes


class Bme280Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of a BME280 or BMP280. The chip type is detected."""

    CHIPS: ClassVar[Mapping[str, Iterable[int]]] = {"BME280": (0x76, 0x77), "BMP280": (0x76, 0x77)}

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x76"  # 0x76 or 0x77, set by the pin SDO
    oversampling: Literal[1, 2, 4, 8, 16] = 1  # samples per measurement; 16 take 0.11 s and have the least noise
