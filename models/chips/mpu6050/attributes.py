"""Attributes of `mpu6050`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

from models.chips.common.attributes import I2cAttributes


class Mpu6050Config(I2cAttributes, kw_only=True, frozen=True):
    """Attributes of an MPU-6050, MPU-6500 or MPU-9250. The chip type is detected."""

    CHIPS: ClassVar[Mapping[str, Iterable[int]]] = {"MPU6050": (0x68, 0x69)}

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str = "0x68"  # 0x68 or 0x69, set by the pin AD0
    gyro_range_dps: Literal[250, 500, 1000, 2000] = 250  # measuring range of rotation, degrees/s
    accel_range_g: Literal[2, 4, 8, 16] = 2  # measuring range of acceleration, g (9.80665 m/s²)
