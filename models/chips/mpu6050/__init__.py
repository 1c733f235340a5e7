"""Movement sensor `mpu6050`: rotation and acceleration from an MPU-6050, MPU-6500 or MPU-9250 on an I2C bus.

Public, in the order in which to read them:

* `simulation`: Simulated gyroscopes and accelerometers MPU-6050, MPU-6500 and MPU-9250
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.chips.mpu6050.simulation import Mpu6050Target as Mpu6050Target
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "simulation": ["Mpu6050Target"],
        },
    )
