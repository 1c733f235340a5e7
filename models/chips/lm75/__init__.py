"""Sensor `lm75`: temperature measured by an LM75 or a register-compatible chip on an I2C bus.

Public, in the order in which to read them:

* `simulation`: Simulated temperature sensors LM75 (SNOS808P) and TMP75 or TMP105 (SBOS288M, SBOS648)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.chips.lm75.simulation import Lm75Target as Lm75Target
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "simulation": ["Lm75Target"],
        },
    )
