"""The implementation of the ports for Linux.

Public, in the order in which to read them:

* `serial`: Serial ports of Linux: pyserial opens and configures a port, then the descriptor is used directly
* `timer`: Kernel timers with a resolution of nanoseconds, on a descriptor
* `hardware`: The Linux implementation of all ports
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hal.linux.hardware import LinuxHardware as LinuxHardware
    from hal.linux.serial import serial_port_paths as serial_port_paths
    from hal.linux.timer import ClockChanges as ClockChanges
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "serial": ["serial_port_paths"],
            "timer": ["ClockChanges"],
            "hardware": ["LinuxHardware"],
        },
    )
