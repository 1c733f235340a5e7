"""Attributes of `sht3x`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from models.chips.common.attributes import I2cAttributes


class Sht3xConfig(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an SHT3x."""

    CHIPS: ClassVar[Mapping[str, Iterable[int]]] = {"SHT3x": (0x44, 0x45)}

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x44"  # 0x44 or 0x45, set by the pin ADDR
