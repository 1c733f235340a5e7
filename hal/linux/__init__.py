"""The implementation of the ports for Linux.

Public, in the order in which to read them:

* `hardware`: The Linux implementation of all ports
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hal.linux.hardware import LinuxHardware as LinuxHardware
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "hardware": ["LinuxHardware"],
        },
    )
