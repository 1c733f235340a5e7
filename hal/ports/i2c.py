"""I2C: the unit of work is the transaction, which nobody interrupts.

A bus is shared by everybody who opened it. Transactions on one bus are carried out one after the other in the order in
which they were asked for. A transaction that is cancelled before it began never begins; one that has begun is finished
by the bus, its result is dropped, and the caller goes on at once.

Errors are HalError: no acknowledge (nobody answers at the address), bus (stuck, arbitration lost, garbled), timeout,
gone (the adapter was unplugged), busy (a kernel driver owns the address), permission, unsupported (the adapter cannot
do that transaction). After `gone` the bus opens the adapter anew at the next transaction, if it is there again.
"""

from __future__ import annotations

from typing import NoReturn, Protocol

FIRST_ADDRESS = 0x08  # 7-bit addresses below and above are reserved (I2C specification UM10204, table 4)
LAST_ADDRESS = 0x77


class I2cBus(Protocol):
    """One I2C bus."""

    @property
    def name(self) -> str:
        """What it is called in errors and reservations; the same for everybody on it."""

    async def transaction(self, address: int, *steps: bytes | int) -> list[bytes]:
        """Carry out `steps` at a 7-bit `address` with repeated starts between them.

        Bytes are written; a number is how many bytes to read. Returns what was read, an item for each number.
        """

    async def lost(self) -> NoReturn:
        """Wait until the adapter is gone, then raise HalError (gone)."""
