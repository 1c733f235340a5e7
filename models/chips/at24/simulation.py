"""Simulated EEPROMs AT24C01 to AT24C512 (Microchip data sheets AT24C01C to AT24C512C)."""

from __future__ import annotations

from collections.abc import Callable

import trio

from hal.sim import Nak

PAGES = {128: 8, 256: 8, 512: 16, 1024: 16, 2048: 16, 4096: 32, 8192: 32, 16384: 64, 32768: 64, 65536: 128}


class At24Target:
    """An EEPROM with its content `memory` and the pin WP `protected`, at its first address; see `blocks`."""

    def __init__(self, size: int = 4096, *, clock: Callable[[], float] = trio.current_time) -> None:
        self.memory = bytearray(b"\xff" * size)
        self.protected = False
        self.write_cycle = 0.003  # s; 5 ms at most
        self.page = PAGES[size]
        self.word_bytes = 1 if size <= 2048 else 2
        self._clock = clock
        self.power_cycle()

    def power_cycle(self) -> None:
        """Reset the word address; the memory is kept."""
        self._next = 0
        self._busy_until = float("-inf")

    def blocks(self) -> list[Block]:
        """Return the blocks at this and the following bus addresses: 24C04 to 24C16 use 2, 4 and 8 addresses."""
        count = max(1, len(self.memory) // 256) if self.word_bytes == 1 else 1
        return [Block(self, number) for number in range(count)]

    def write(self, data: bytes) -> None:
        """Access the first block."""
        self.write_block(0, data)

    def read(self, n: int) -> bytes:
        """Access the first block."""
        return self.read_block(0, n)

    def write_block(self, block: int, data: bytes) -> None:
        """Set the word address and write data there; at the end of a page it continues at the page's beginning."""
        if self._clock() < self._busy_until:
            raise Nak
        if len(data) < self.word_bytes:
            return
        word = int.from_bytes(data[: self.word_bytes], "big") + 256 * block
        self._next = word % len(self.memory)
        content = data[self.word_bytes :]
        if not content or self.protected:
            return
        first = self._next - self._next % self.page
        offset = self._next
        for value in content:
            self.memory[offset] = value
            offset = first + (offset + 1 - first) % self.page
        self._next = offset
        self._busy_until = self._clock() + self.write_cycle

    def read_block(self, block: int, n: int) -> bytes:
        """Read from the word address; at the end it continues at the beginning."""
        if self._clock() < self._busy_until:
            raise Nak
        if self.word_bytes == 1:
            self._next = self._next % 256 + 256 * block if len(self.memory) > 256 else self._next
        data = bytes(self.memory[(self._next + i) % len(self.memory)] for i in range(n))
        self._next = (self._next + n) % len(self.memory)
        return data


class Block:
    """256 bytes of a chip at a separate bus address."""

    def __init__(self, chip: At24Target, number: int) -> None:
        self.chip = chip
        self.number = number

    def write(self, data: bytes) -> None:
        """Write to this block."""
        self.chip.write_block(self.number, data)

    def read(self, n: int) -> bytes:
        """Read from this block."""
        return self.chip.read_block(self.number, n)
