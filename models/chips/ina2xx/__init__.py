"""Power sensors `ina219` and `ina226` on an I2C bus, which measure voltage, current through a shunt, and power.

Public, in the order in which to read them:

* `simulation`: Simulated power monitors INA219 (Texas Instruments SBOS448G) and INA226 (SBOS547A)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.chips.ina2xx.simulation import Ina219Target as Ina219Target
    from models.chips.ina2xx.simulation import Ina226Target as Ina226Target
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "simulation": ["Ina219Target", "Ina226Target"],
        },
    )
