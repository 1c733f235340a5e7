"""Generic component `at24`: commands for an EEPROM (24C01 to 24C512) on an I2C bus.

Public, in the order in which to read them:

* `simulation`: Simulated EEPROMs AT24C01 to AT24C512 (Microchip data sheets AT24C01C to AT24C512C)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.chips.at24.simulation import At24Target as At24Target
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "simulation": ["At24Target"],
        },
    )
