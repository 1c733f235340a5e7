"""I2C EEPROMs AT24C01 to AT24C512 and compatible ones of other manufacturers.

Sizes, pages and addressing: Microchip (Atmel) AT24C01C/02C (doc 8700), AT24C04C/08C (8787), AT24C16C (8719),
AT24C32D (8866), AT24C64D (8865), AT24C128C/256C (8734 and 8568), AT24C512C (8720).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import trio

from hal import Fault, HalError, Registers
from models.chips.common.chip import Chip

WRITE_CYCLE: Final = 0.005  # s, t_WR, "AC Characteristics"
PATIENCE: Final = 5  # write cycles until a chip that does not acknowledge counts as gone; some older ones need two
POLL_INTERVAL: Final = 0.0005  # s between attempts to address the chip while it writes ("Acknowledge polling")
CHUNK: Final = 64  # bytes read in one transaction, so that other users of the bus need not wait long
BLANK: Final = 0xFF  # the content of a new chip


@dataclass(frozen=True, slots=True)
class EepromSize:
    """A size of the chip: its bytes, the bytes of a page, and the bytes of a word address."""

    title: str
    size: int
    page: int
    word_bytes: int

    @property
    def addresses(self) -> int:
        """The number of bus addresses it uses: the upper bits of a word address may be part of the device address."""
        return max(1, self.size >> (8 * self.word_bytes))


MODELS: Final = {
    "24c01": EepromSize("24C01", 128, 8, 1),
    "24c02": EepromSize("24C02", 256, 8, 1),
    "24c04": EepromSize("24C04", 512, 16, 1),
    "24c08": EepromSize("24C08", 1024, 16, 1),
    "24c16": EepromSize("24C16", 2048, 16, 1),
    "24c32": EepromSize("24C32", 4096, 32, 2),
    "24c64": EepromSize("24C64", 8192, 32, 2),
    "24c128": EepromSize("24C128", 16384, 64, 2),
    "24c256": EepromSize("24C256", 32768, 64, 2),
    "24c512": EepromSize("24C512", 65536, 128, 2),
}


def word_address(offset: int, model: EepromSize) -> tuple[int, bytes]:
    """Return the number to add to the device address for `offset`, and the bytes of the word address."""
    within = 1 << (8 * model.word_bytes)
    return offset // within, (offset % within).to_bytes(model.word_bytes, "big")


def pieces(offset: int, count: int, size: int) -> Iterator[tuple[int, int]]:
    """Split a range at multiples of `size` into (offset, count), so that no piece crosses a page boundary."""
    while count > 0:
        length = min(count, size - offset % size)
        yield offset, length
        offset, count = offset + length, count - length


class At24(Chip):
    """An EEPROM. It has no identity register, so `identify` can only check that it answers."""

    def __init__(self, registers: Registers, model: EepromSize) -> None:
        super().__init__(registers)
        self.model = model
        self.title = model.title

    async def identify(self) -> None:
        """Check that the last byte can be read."""
        await self.read(self.model.size - 1, 1)

    async def read(self, offset: int, count: int) -> bytes:
        """Read `count` bytes from `offset`; ValueError if the range is outside the chip."""
        self._check(offset, count)
        data = b""
        for start, length in pieces(offset, count, CHUNK):
            block, word = word_address(start, self.model)
            data += (await self.registers.bus.transaction(self.registers.address + block, word, length))[0]
        return data

    async def write(self, offset: int, data: bytes) -> None:
        """Write `data` at `offset`, page by page, and verify it.

        If it is cancelled or fails, each page was written completely or not at all. Raises ValueError if the range is
        outside the chip; HalError with Fault.TIMEOUT if a page takes too long, with Fault.PERMISSION if the data was
        not stored because the chip is write-protected.
        """
        self._check(offset, len(data))
        for start, length in pieces(offset, len(data), self.model.page):
            page = data[start - offset : start - offset + length]
            block, word = word_address(start, self.model)
            address = self.registers.address + block
            await self.registers.bus.transaction(address, word + page)
            await self._wait_written(address, word)
            if await self.read(start, length) != page:
                raise HalError(
                    f"{self} has not stored {length} bytes at {start}",
                    Fault.PERMISSION,
                    remedy="connect its pin WP to ground, and check the configured size",
                )

    async def _wait_written(self, address: int, word: bytes) -> None:
        """Wait until the chip acknowledges again; sending only a word address writes nothing.

        The time limit is checked before each attempt, so that a slow attempt on a busy computer still counts.
        """
        deadline = trio.current_time() + WRITE_CYCLE * PATIENCE
        while True:
            await trio.sleep(POLL_INTERVAL)
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
