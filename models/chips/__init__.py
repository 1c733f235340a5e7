"""Chips on I2C and SPI buses.

Public, in the order in which to read them:

* `common.addresses`: Which chips may be at an I2C address
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.chips.common.addresses import chips_at as chips_at
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "common.addresses": ["chips_at"],
        },
    )
