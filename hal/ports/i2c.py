"""I2C: the unit of work is the transaction, which nobody interrupts.

A bus is shared by everybody who opened it. Transactions on one bus are carried out one after the other in the order in
which they were asked for. A transaction that is cancelled before it began never begins; one that has begun is finished
by the bus, its result is dropped, and the caller goes on at once.

Errors are HalError: no acknowledge (nobody answers at the address), bus (stuck, arbitration lost, garbled), timeout,
gone (the adapter was unplugged), busy (a kernel driver owns the address), permission, unsupported (the adapter cannot
do that transaction). After `gone` the bus opens the adapter anew at the next transaction, if it is there again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn, Protocol

from hal.errors import Fault, HalError

STUCK: Final = "switch the devices of the bus off and on; check the wiring and the pull-up resistors if it stays"
"""What to do about a clock or data line that is held low."""

FIRST_ADDRESS = 0x08  # 7-bit addresses below and above are reserved (I2C specification UM10204, table 4)
LAST_ADDRESS = 0x77
LAST_POSSIBLE = 0x7F  # of seven bits


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


def check_transaction(name: str, address: int, steps: Sequence[bytes | int]) -> None:
    """What no bus begins: HalError (unsupported) for an address that is none, ValueError for no steps."""
    if not 0 <= address <= LAST_POSSIBLE:
        raise HalError(
            f"{name}: 0x{address:02x} is not a 7-bit address",
            Fault.UNSUPPORTED,
            remedy="shift it right by one bit: data sheets often name it with the read/write bit",
        )
    if not steps:
        raise ValueError("a transaction has at least one step")
