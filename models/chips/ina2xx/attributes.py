"""Attributes of the power sensors `ina219` and `ina226`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal

import msgspec

from models.chips.common.attributes import I2cAttributes
from models.chips.ina2xx.datasheet import INA219, INA226, calibrate


class Ina219Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an INA219."""

    CHIPS: ClassVar[Mapping[str, Iterable[int]]] = {"INA219": range(0x40, 0x50)}

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x40"  # 0x40 to 0x4f, set by the pins A0 and A1
    shunt_ohms: Annotated[float, msgspec.Meta(gt=0)] = 0.1  # resistance of the shunt in ohms
    max_current_a: Annotated[float, msgspec.Meta(gt=0)] = 3.2  # largest expected current, at most 0.32 V / shunt_ohms
    samples: Literal[1, 2, 4, 8, 16, 32, 64, 128] = 8  # samples to average; each takes 0.53 ms per quantity

    def __post_init__(self) -> None:
        super().__post_init__()
        calibrate(INA219, self.shunt_ohms, self.max_current_a)


class Ina226Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an INA226."""

    CHIPS: ClassVar[Mapping[str, Iterable[int]]] = {"INA226": range(0x40, 0x50)}

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x40"  # 0x40 to 0x4f, set by the pins A0 and A1
    shunt_ohms: Annotated[float, msgspec.Meta(gt=0)] = 0.1  # resistance of the shunt in ohms
    max_current_a: Annotated[float, msgspec.Meta(gt=0)] = 0.8  # largest expected current, at most 0.08 V / shunt_ohms
    samples: Literal[1, 4, 16, 64, 128, 256, 512, 1024] = 4  # samples to average; each takes 1.1 ms per quantity

    def __post_init__(self) -> None:
        super().__post_init__()
        calibrate(INA226, self.shunt_ohms, self.max_current_a)
