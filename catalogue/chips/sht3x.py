"""Attributes that `runtime.models.chips.sht3x` reads."""

from __future__ import annotations

from catalogue.chips.common.device import I2cAttributes


class Sht3xConfig(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an SHT3x."""

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x44"  # 0x44 or 0x45, set by the pin ADDR
