"""The clock of the computer: its time zone.

Public, in the order in which to read them:

* `zone`: The time zone of the device, as the C library determines it: the variable TZ, otherwise /etc/localtime
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.clock.zone import LOCALTIME as LOCALTIME
    from support.clock.zone import device_zone as device_zone
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "zone": ["LOCALTIME", "device_zone"],
        },
    )
