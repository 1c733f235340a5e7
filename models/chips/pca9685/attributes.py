"""Attributes of `pca9685`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

import msgspec

from models.chips.common.attributes import I2cAttributes
from models.chips.pca9685.datasheet import pre_scale_of


class Pca9685Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of a PCA9685."""

    # 0x70 is its all-call address
    CHIPS: ClassVar[Mapping[str, Iterable[int]]] = {"PCA9685": (*range(0x40, 0x70), *range(0x71, 0x78))}

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x40"  # 0x40 to 0x7f except 0x70, set by the pins A0 to A5
    pwm_frequency_hz: Annotated[int, msgspec.Meta(gt=0)] = 200  # PWM frequency of all outputs, 24 to 1526 Hz
    inverted: bool = False  # outputs are low when on and high when off
    open_drain: bool = False  # outputs are open drain: they only pull low

    def __post_init__(self) -> None:
        super().__post_init__()
        pre_scale_of(self.pwm_frequency_hz)
