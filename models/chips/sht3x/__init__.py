"""Sensor `sht3x`: temperature and humidity measured by an SHT30, SHT31 or SHT35 on an I2C bus.

Public, in the order in which to read them:

* `simulation`: Simulated SHT3x (Sensirion "Datasheet SHT3x-DIS", version 5, May 2018): temperature and humidity
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.chips.sht3x.simulation import Sht3xTarget as Sht3xTarget
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "simulation": ["Sht3xTarget"],
        },
    )
