"""Attributes of `lm75`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

from models.chips.common.attributes import I2cAttributes


class Lm75Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an LM75."""

    CHIPS: ClassVar[Mapping[str, Iterable[int]]] = {"LM75": range(0x48, 0x50)}
    SUGGESTED: ClassVar[int] = 1

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x48"  # 0x48 to 0x4f, set by the pins A0 to A2
    chip: Literal["lm75", "lm75b", "tmp75", "tmp175", "tmp105", "tmp275", "ds75", "tcn75a"] = "lm75"  # chip type
