"""Sensor `ads1115`: voltages measured by an ADS1115 or ADS1015 on an I2C bus.

Public, in the order in which to read them:

* `simulation`: Simulated ADS1115 and ADS1015 (Texas Instruments SBAS444D, SBAS473E), analog-to-digital converters on
  I2C
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.chips.ads1115.simulation import Ads1115Target as Ads1115Target
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "simulation": ["Ads1115Target"],
        },
    )
