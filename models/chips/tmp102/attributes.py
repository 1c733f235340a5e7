"""Attributes of `tmp102`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from models.chips.common.attributes import I2cAttributes


class Tmp102Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of a TMP102."""

    CHIPS: ClassVar[Mapping[str, Iterable[int]]] = {"TMP102": range(0x48, 0x4C)}
    SUGGESTED: ClassVar[int] = 2

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x48"  # 0x48 to 0x4b, set by the pin ADD0
