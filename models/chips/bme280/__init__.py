"""Sensor `bme280`: a BME280 (temperature, pressure and humidity) or BMP280 (without humidity) on an I2C bus.

Public, in the order in which to read them:

* `simulation`: Simulated BME280 and BMP280 (Bosch BST-BME280-DS002 revision 1.6, BST-BMP280-DS001 revision 1.14)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.chips.bme280.simulation import Bme280Target as Bme280Target
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "simulation": ["Bme280Target"],
        },
    )
