"""Which addresses of an I2C bus answer, asked as i2cdetect of i2c-tools does it."""

from __future__ import annotations

from typing import Final

from hal.errors import Fault, HalError
from hal.ports.i2c import FIRST_ADDRESS, LAST_ADDRESS, I2cBus

READ_RANGES: Final = (range(0x30, 0x38), range(0x50, 0x60))
"""EEPROMs live here: an empty write could spoil some of them (the 24RF08), and write protection has its address here.

Elsewhere an empty write is harmless, while reading could take away what a device has to say.
"""


async def scan(bus: I2cBus) -> list[int]:
    """The addresses from 0x08 to 0x77 that answer, and those that a kernel driver has.

    HalError: gone, permission, timeout (the bus is stuck), unsupported if the adapter can ask neither way, and what the
    bus said last if nothing but faults came back.
    """
    found: list[int] = []
    refused: HalError | None = None
    asked = False
    for address in range(FIRST_ADDRESS, LAST_ADDRESS + 1):
        try:
            await _ask(bus, address)
        except HalError as error:
            if error.fault is Fault.BUSY:
                found.append(address)
            elif error.fault is Fault.BUS:
                refused = error
            elif error.fault is Fault.NO_ACKNOWLEDGE:
                asked = True
            else:
                raise
        else:
            found.append(address)
    if refused is not None and not found and not asked:
        raise refused
    return found


async def _ask(bus: I2cBus, address: int) -> None:
    if any(address in addresses for addresses in READ_RANGES):
        ways: tuple[bytes | int, ...] = (1, b"")
    else:
        ways = (b"", 1)
    try:
        await bus.transaction(address, ways[0])
    except HalError as error:
        if error.fault is not Fault.UNSUPPORTED:
            raise
        await bus.transaction(address, ways[1])
