"""Movement sensor `mpu6050`: rotation and acceleration from an MPU-6050, MPU-6500 or MPU-9250 on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from engine import Attributes, Extra, MovementProperties, MovementSensor, model
from hal import Registers
from models.chips.common.device import I2cDevice
from models.chips.mpu6050 import chip as mpu6050
from models.chips.mpu6050.attributes import Mpu6050Config
from schema import Vector3


@model("rdk:builtin:mpu6050")
class Mpu6050(I2cDevice[mpu6050.Mpu6050], MovementSensor):
    """Axes are those printed on the chip; at rest it measures 1 g upwards. A magnetometer is not read."""

    Config: ClassVar[type[Attributes]] = Mpu6050Config

    def chip_of(self, registers: Registers) -> mpu6050.Mpu6050:
        """Create the driver with the configured ranges."""
        config: Mpu6050Config = self.attributes
        return mpu6050.Mpu6050(registers, config.gyro_range_dps, config.accel_range_g)

    async def get_angular_velocity(self, *, extra: Extra = None) -> Vector3:
        """Return the latest of 200 measurements per second (degrees/s)."""
        async with self.chip() as chip:
            return Vector3(*(await chip.measure()).rotation)

    async def get_linear_acceleration(self, *, extra: Extra = None) -> Vector3:
        """Return the latest of 200 measurements per second (m/s²), including gravity."""
        async with self.chip() as chip:
            return Vector3(*(await chip.measure()).acceleration)

    async def get_properties(self, *, extra: Extra = None) -> MovementProperties:
        """Report support of angular velocity and linear acceleration."""
        return MovementProperties(angular_velocity_supported=True, linear_acceleration_supported=True)

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        """Return both measurements of the same moment, and `temperature_c` of the chip."""
        async with self.chip() as chip:
            motion = await chip.measure()
        return {
            "angular_velocity": Vector3(*motion.rotation),
            "linear_acceleration": Vector3(*motion.acceleration),
            "temperature_c": motion.temperature,
        }
