"""Attributes that `runtime.models.chips.ina219` reads."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from catalogue.chips.common.device import I2cAttributes
from hal.chips.ina2xx import INA219, calibrate


class Ina219Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an INA219."""

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x40"  # 0x40 to 0x4f, set by the pins A0 and A1
    shunt_ohms: Annotated[float, msgspec.Meta(gt=0)] = 0.1  # resistance of the shunt in ohms
    max_current_a: Annotated[float, msgspec.Meta(gt=0)] = 3.2  # largest expected current, at most 0.32 V / shunt_ohms
    samples: Literal[1, 2, 4, 8, 16, 32, 64, 128] = 8  # samples to average; each takes 0.53 ms per quantity

    def __post_init__(self) -> None:
        super().__post_init__()
        calibrate(INA219, self.shunt_ohms, self.max_current_a)
