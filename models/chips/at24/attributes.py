"""Attributes of `at24`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

from models.chips.common.attributes import I2cAttributes

Size = Literal[
    "24c01", "24c02", "24c04", "24c08", "24c16", "24c32", "24c64", "24c128", "24c256", "24c512"
]  # fmt: skip


class At24Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an EEPROM."""

    CHIPS: ClassVar[Mapping[str, Iterable[int]]] = {"AT24": range(0x50, 0x58)}

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x50"  # 0x50 to 0x57, set by the pins A0 to A2; 24C04 to 24C16: the first address
    chip: Size  # chip type; a wrong size is not detected at start
