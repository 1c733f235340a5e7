"""AT24C01 to AT24C512 and the EEPROMs of other makers that answer alike, on I2C.

Sizes, pages and addressing: Microchip (Atmel) AT24C01C/02C (doc 8700), AT24C04C/08C (8787), AT24C16C (8719),
AT24C32D (8866), AT24C64D (8865), AT24C128C/256C (8734 and 8568), AT24C512C (8720).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import trio

from hal.chips.chip import Chip
from hal.errors import Fault, HalError
from hal.registers import Registers

WRITE_CYCLE: Final = 0.005  # s, t_WR, "AC Characteristics"
PATIENCE: Final = 5  # write cycles until a chip that does not acknowledge counts as gone; some older ones take two
LOOK: Final = 0.0005  # s between looks at whether it acknowledges again ("Acknowledge polling")
CHUNK: Final = 64  # bytes read in one transaction, so that others have their turn on the bus
BLANK: Final = 0xFF  # what a new chip holds


@dataclass(frozen=True, slots=True)
class Model:
    """One size: bytes, bytes of a page, and bytes of a word address."""

    title: str
    size: int
    page: int
    word_bytes: int

    @property
    def addresses(self) -> int:
        """How many addresses of the bus it takes: word address bits that do not fit are in the device address."""
        return max(1, self.size >> (8 * self.word_bytes))


MODELS: Final = {
    "24c01": Model("24C01", 128, 8, 1),
    "24c02": Model("24C02", 256, 8, 1),
    "24c04": Model("24C04", 512, 16, 1),
    "24c08": Model("24C08", 1024, 16, 1),
    "24c16": Model("24C16", 2048, 16, 1),
    "24c32": Model("24C32", 4096, 32, 2),
    "24c64": Model("24C64", 8192, 32, 2),
    "24c128": Model("24C128", 16384, 64, 2),
    "24c256": Model("24C256", 32768, 64, 2),
    "24c512": Model("24C512", 65536, 128, 2),
}


def word_address(offset: int, model: Model) -> tuple[int, bytes]:
    """What `offset` adds to the device's address, and the bytes of the word address."""
    within = 1 << (8 * model.word_bytes)
    return offset // within, (offset % within).to_bytes(model.word_bytes, "big")


def pieces(offset: int, count: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut a range at multiples of `size`: (offset, count) of each piece, none of which crosses a page."""
    while count > 0:
        length = min(count, size - offset % size)
        yield offset, length
        offset, count = offset + length, count - length


class At24(Chip):
    """Bytes that stay without power. It has no identity; that its addresses answer is all there is to see."""

    def __init__(self, registers: Registers, model: Model) -> None:
        super().__init__(registers)
        self.model = model
        self.title = model.title

    async def identify(self) -> None:
        """The last byte can be read."""
        await self.read(self.model.size - 1, 1)

    async def read(self, offset: int, count: int) -> bytes:
        """`count` bytes from `offset` on; ValueError beyond the chip."""
        self._check(offset, count)
        found = b""
        for start, length in pieces(offset, count, CHUNK):
            block, word = word_address(start, self.model)
            found += (await self.registers.bus.transaction(self.registers.address + block, word, length))[0]
        return found

    async def write(self, offset: int, data: bytes) -> None:
        """Write `data` from `offset` on, page by page, and read it back.

        Cancelled or failed in between, whole pages have been written or not. ValueError beyond the chip; HalError
        (timeout) if a page takes too long, (permission) if the chip has not taken it: it is write-protected.
        """
        self._check(offset, len(data))
        for start, length in pieces(offset, len(data), self.model.page):
            page = data[start - offset : start - offset + length]
            block, word = word_address(start, self.model)
            address = self.registers.address + block
            await self.registers.bus.transaction(address, word + page)
            await self._written(address, word)
            if await self.read(start, length) != page:
                raise HalError(
                    f"{self} has not taken {length} bytes at {start}",
                    Fault.PERMISSION,
                    remedy="connect its pin WP to ground; check that the size is right",
                )

    async def _written(self, address: int, word: bytes) -> None:
        """Wait until it acknowledges again; a word address alone writes nothing.

        It is given up by a look that began too late, not by one that took too long: this computer may be busy.
        """
        deadline = trio.current_time() + WRITE_CYCLE * PATIENCE
        while True:
            await trio.sleep(LOOK)
            late = trio.current_time() >= deadline
            try:
                await self.registers.bus.transaction(address, word)
            except HalError as error:
                if error.fault is not Fault.NO_ACKNOWLEDGE:
                    raise
            else:
                return
            if late:
                raise HalError(f"{self} does not finish writing", Fault.TIMEOUT)

    def _check(self, offset: int, count: int) -> None:
        if offset < 0 or count < 0 or offset + count > self.model.size:
            raise ValueError(f"{count} bytes at {offset} are not within the {self.model.size} bytes of a {self.title}")
