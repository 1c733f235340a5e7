"""Base classes of chips with registers: the first byte written is a pointer, which is also used for reads."""

from __future__ import annotations


class WideRegisters:
    """Registers of one or two bytes, each with a separate pointer; accesses do not change the pointer."""

    pointer = 0
    pointer_mask = 0xFF

    def write(self, data: bytes) -> None:
        """Set the pointer, then write the following bytes to that register."""
        if data:
            self.pointer = data[0] & self.pointer_mask
            if len(data) > 1:
                self.store(self.pointer, data[1:])

    def read(self, n: int) -> bytes:
        """Return the register, followed by ones for the idle bus."""
        return (self.load(self.pointer) + b"\xff" * n)[:n]

    def load(self, pointer: int) -> bytes:
        """Return the content of a register."""
        raise NotImplementedError

    def store(self, pointer: int, data: bytes) -> None:
        """Write at least one byte to a register."""
        raise NotImplementedError


class ByteRegisters:
    """Registers of one byte; the pointer is incremented after each byte written or read."""

    pointer = 0

    def write(self, data: bytes) -> None:
        """Set the pointer, then write the following bytes from there."""
        if data:
            self.pointer = data[0]
            for value in data[1:]:
                self.store(self.pointer, value)
                self.pointer = self.after(self.pointer)

    def read(self, n: int) -> bytes:
        """Read `n` bytes from the pointer."""
        data = bytearray()
        for _ in range(n):
            data.append(self.load(self.pointer))
            self.pointer = self.after(self.pointer)
        return bytes(data)

    def after(self, pointer: int) -> int:
        """Return the pointer after an access at `pointer`."""
        return (pointer + 1) & 0xFF

    def load(self, pointer: int) -> int:
        """Return the content of a register."""
        raise NotImplementedError

    def store(self, pointer: int, value: int) -> None:
        """Write a byte to a register."""
        raise NotImplementedError
