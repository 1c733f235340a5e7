"""I2C: the unit of work is the transaction, which is never interrupted.

A bus is shared by all its users. Transactions on a bus are executed one after the other in the order of the requests. A
transaction that is cancelled before it begins is not executed; one that has begun is finished, its result is dropped,
and the caller returns at once.

Errors are HalError: no acknowledge (no device answers at the address), bus (stuck, arbitration lost, corrupted data),
timeout, gone (the adapter was unplugged), busy (a kernel driver uses the address), permission, unsupported (by the
adapter). After `gone`, the next transaction opens the adapter again if it is available.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn, Protocol

from hal.errors import Fault, HalError

STUCK: Final = "switch the devices of the bus off and on; if the error persists, check the wiring and pull-up resistors"
"""The remedy for a clock or data line that is held low."""

FIRST_ADDRESS = 0x08  # 7-bit addresses below and above are reserved (I2C specification UM10204, table 4)
LAST_ADDRESS = 0x77
LAST_POSSIBLE = 0x7F  # the largest number of 7 bits


class I2cBus(Protocol):
    """An I2C bus."""

    @property
    def name(self) -> str:
        """The name of the bus in errors and reservations, the same for all users."""

    async def transaction(self, address: int, *steps: bytes | int) -> list[bytes]:
        """Execute `steps` at a 7-bit `address` with repeated starts between them.

        A step of bytes is written; a number is the count of bytes to read. Returns the data of each read.
        """

    async def lost(self) -> NoReturn:
        """Wait until the adapter is gone, then raise HalError (gone)."""


def check_transaction(name: str, address: int, steps: Sequence[bytes | int]) -> None:
    """Reject invalid transactions: HalError (unsupported) for an invalid address, ValueError if there are no steps."""
    if not 0 <= address <= LAST_POSSIBLE:
        raise HalError(
            f"{name}: 0x{address:02x} is not a 7-bit address",
            Fault.UNSUPPORTED,
            remedy="shift it right by one bit: data sheets often include the read/write bit",
        )
    if not steps:
        raise ValueError("a transaction has at least one step")
