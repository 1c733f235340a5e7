"""Scan of an I2C bus for devices, like i2cdetect of i2c-tools."""

from __future__ import annotations

from typing import Final

from hal.errors import Fault, HalError
from hal.ports.i2c import FIRST_ADDRESS, LAST_ADDRESS, I2cBus

READ_RANGES: Final = (range(0x30, 0x38), range(0x50, 0x60))
"""Addresses of EEPROMs and of their write protection: an empty write could corrupt some of them (the 24RF08).

At other addresses an empty write is harmless, while reading could consume data of a device.
"""


async def scan(bus: I2cBus) -> list[int]:
    """Return the addresses from 0x08 to 0x77 that answer or are used by a kernel driver.

    HalError: gone, permission, timeout (the bus is stuck), unsupported if the adapter supports no kind of probe, and
    the last fault of the bus if all probes failed.
    """
    answering: list[int] = []
    last_fault: HalError | None = None
    bus_works = False
    for address in range(FIRST_ADDRESS, LAST_ADDRESS + 1):
        try:
            await _probe(bus, address)
        except HalError as error:
            if error.fault is Fault.BUSY:
                answering.append(address)
            elif error.fault is Fault.BUS:
                last_fault = error
            elif error.fault is Fault.NO_ACKNOWLEDGE:
                bus_works = True
            else:
                raise
        else:
            answering.append(address)
    if last_fault is not None and not answering and not bus_works:
        raise last_fault
    return answering


async def _probe(bus: I2cBus, address: int) -> None:
    if any(address in addresses for addresses in READ_RANGES):
        probes: tuple[bytes | int, ...] = (1, b"")
    else:
        probes = (b"", 1)
    try:
        await bus.transaction(address, probes[0])
    except HalError as error:
        if error.fault is not Fault.UNSUPPORTED:
            raise
        await bus.transaction(address, probes[1])
