"""AT24C01 to AT24C512 (Microchip data sheets AT24C01C to AT24C512C), EEPROM, from outside."""

from __future__ import annotations

from collections.abc import Callable

import trio

from hal.sim.target import Nak

PAGES = {128: 8, 256: 8, 512: 16, 1024: 16, 2048: 16, 4096: 32, 8192: 32, 16384: 64, 32768: 64, 65536: 128}


class At24Target:
    """`memory` is what it holds; `protected` is the pin WP. The chip at its first address; see `blocks`."""

    def __init__(self, size: int = 4096, *, clock: Callable[[], float] = trio.current_time) -> None:
        self.memory = bytearray(b"\xff" * size)
        self.protected = False
        self.write_cycle = 0.003  # s; 5 ms at most
        self.page = PAGES[size]
        self.word_bytes = 1 if size <= 2048 else 2
        self._clock = clock
        self.power_cycle()

    def power_cycle(self) -> None:
        """The word address is forgotten, the memory is not."""
        self._next = 0
        self._busy_until = float("-inf")

    def blocks(self) -> list[Block]:
        """What is at this and the following addresses of the bus: 24C04 to 24C16 take 2, 4 and 8 of them."""
        count = max(1, len(self.memory) // 256) if self.word_bytes == 1 else 1
        return [Block(self, number) for number in range(count)]

    def write(self, data: bytes) -> None:
        """As at its first address."""
        self.take(0, data)

    def read(self, n: int) -> bytes:
        """As at its first address."""
        return self.give(0, n)

    def take(self, block: int, data: bytes) -> None:
        """A word address and what to write there, within one page: beyond its end it goes on at its beginning."""
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
        place = self._next
        for value in content:
            self.memory[place] = value
            place = first + (place + 1 - first) % self.page
        self._next = place
        self._busy_until = self._clock() + self.write_cycle

    def give(self, block: int, n: int) -> bytes:
        """From the word address on; at the end it goes on at the beginning."""
        if self._clock() < self._busy_until:
            raise Nak
        if self.word_bytes == 1:
            self._next = self._next % 256 + 256 * block if len(self.memory) > 256 else self._next
        found = bytes(self.memory[(self._next + i) % len(self.memory)] for i in range(n))
        self._next = (self._next + n) % len(self.memory)
        return found


class Block:
    """256 bytes of a chip, at an address of their own."""

    def __init__(self, chip: At24Target, number: int) -> None:
        self.chip = chip
        self.number = number

    def write(self, data: bytes) -> None:
        """To this block."""
        self.chip.take(self.number, data)

    def read(self, n: int) -> bytes:
        """From this block on."""
        return self.chip.give(self.number, n)
