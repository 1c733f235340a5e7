"""Attributes of `ads1115`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

from models.chips.ads1115.datasheet import CHANNELS, INPUTS, MODELS, config_word
from models.chips.common import channel_attributes as channels
from models.chips.common.attributes import I2cAttributes
from models.chips.common.channel_attributes import Channel


class Ads1115Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an ADS1115 or ADS1015."""

    CHIPS: ClassVar[Mapping[str, Iterable[int]]] = {"ADS1115": range(0x48, 0x4C), "ADS1015": range(0x48, 0x4C)}

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x48"  # 0x48 to 0x4b, set by the pin ADDR
    chip: Literal["ads1115", "ads1015"] = "ads1115"  # chip type
    full_scale_v: float = 4.096  # range: 6.144, 4.096, 2.048, 1.024, 0.512, 0.256; no input may exceed the supply
    samples_per_sec: int = 128  # ads1115: 8, 16, 32, 64, 128, 250, 475, 860; ads1015: 128, 250, 490, 920 to 3300
    channels: tuple[Channel, ...] = ()  # channels to read; default: all four inputs against ground

    def __post_init__(self) -> None:
        super().__post_init__()
        model = MODELS[self.chip]
        config_word("0", self.full_scale_v, self.samples_per_sec, model)
        channels.check(self.channels, tuple(INPUTS))

    def read(self) -> tuple[Channel, ...]:
        """Return the channels to read, with the default applied."""
        return self.channels or channels.each(CHANNELS)
