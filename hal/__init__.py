"""Hardware abstraction: ports, their implementations (Linux, gpiozero, simulation), and their errors.

Public, in the order in which to read them:

* `clock_changes`: Notification when the clock of the computer is set
* `errors`: Errors of hardware, each with a category of the cause and a remedy
* `lines`: Split a stream of bytes into lines
* `nmea`: NMEA 0183: sentences of satellite receivers and compasses, combined into the current facts
* `registers`: Access to the registers of an I2C device: write a register's address, then write or read its content
* `reservations`: Reservations of pins, addresses and ports that can have only one owner
* `hardware`: Hardware: a family of back ends, and everything that a driver can open through it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hal.clock_changes import ClockChanges as ClockChanges
    from hal.errors import Fault as Fault
    from hal.errors import HalError as HalError
    from hal.hardware import Hardware as Hardware
    from hal.lines import LineBuffer as LineBuffer
    from hal.nmea import LONGEST as LONGEST
    from hal.nmea import QUALITY as QUALITY
    from hal.nmea import Receiver as Receiver
    from hal.registers import Registers as Registers
    from hal.reservations import Reservations as Reservations
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "clock_changes": ["ClockChanges"],
            "errors": ["Fault", "HalError"],
            "lines": ["LineBuffer"],
            "nmea": ["LONGEST", "QUALITY", "Receiver"],
            "registers": ["Registers"],
            "reservations": ["Reservations"],
            "hardware": ["Hardware"],
        },
    )
