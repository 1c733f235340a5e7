"""Board `pca9685`: a PCA9685 on an I2C bus, with 16 PWM outputs for servos, lamps and motor drivers.

Public, in the order in which to read them:

* `simulation`: Simulated PCA9685 (NXP revision 4, 16 April 2015): 16 outputs with pulse-width modulation
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.chips.pca9685.simulation import Pca9685Target as Pca9685Target
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "simulation": ["Pca9685Target"],
        },
    )
