"""Attributes that `runtime.models.chips.pca9685` reads."""

from __future__ import annotations

from typing import Annotated

import msgspec

from catalogue.chips.common.device import I2cAttributes
from hal.chips import pca9685


class Pca9685Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of a PCA9685."""

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x40"  # 0x40 to 0x7f except 0x70, set by the pins A0 to A5
    pwm_frequency_hz: Annotated[int, msgspec.Meta(gt=0)] = 200  # PWM frequency of all outputs, 24 to 1526 Hz
    inverted: bool = False  # outputs are low when on and high when off
    open_drain: bool = False  # outputs are open drain: they only pull low

    def __post_init__(self) -> None:
        super().__post_init__()
        pca9685.pre_scale_of(self.pwm_frequency_hz)
