"""Sensor `tmp102`: temperature measured by a TMP102 on an I2C bus.

Public, in the order in which to read them:

* `simulation`: Simulated temperature sensor TMP102 (Texas Instruments SBOS397H, December 2018)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.chips.tmp102.simulation import Tmp102Target as Tmp102Target
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "simulation": ["Tmp102Target"],
        },
    )
