"""How chips with registers are addressed: the first byte written is a pointer, which stays for reads."""

from __future__ import annotations


class WideRegisters:
    """Registers of one or two bytes, each at a pointer of its own; reading does not move the pointer."""

    pointer = 0
    pointer_mask = 0xFF

    def write(self, data: bytes) -> None:
        """Set the pointer; what follows is for that register."""
        if data:
            self.pointer = data[0] & self.pointer_mask
            if len(data) > 1:
                self.store(self.pointer, data[1:])

    def read(self, n: int) -> bytes:
        """The register, then the idle bus, which is pulled up."""
        return (self.load(self.pointer) + b"\xff" * n)[:n]

    def load(self, pointer: int) -> bytes:
        """Content of a register."""
        raise NotImplementedError

    def store(self, pointer: int, data: bytes) -> None:
        """Bytes for a register, at least one."""
        raise NotImplementedError


class ByteRegisters:
    """Registers of one byte; the pointer moves on with each byte written or read."""

    pointer = 0

    def write(self, data: bytes) -> None:
        """Set the pointer, then write from there on."""
        if data:
            self.pointer = data[0]
            for value in data[1:]:
                self.store(self.pointer, value)
                self.pointer = self.after(self.pointer)

    def read(self, n: int) -> bytes:
        """Read from the pointer on."""
        found = bytearray()
        for _ in range(n):
            found.append(self.load(self.pointer))
            self.pointer = self.after(self.pointer)
        return bytes(found)

    def after(self, pointer: int) -> int:
        """Where the pointer goes from `pointer`."""
        return (pointer + 1) & 0xFF

    def load(self, pointer: int) -> int:
        """Content of a register."""
        raise NotImplementedError

    def store(self, pointer: int, value: int) -> None:
        """One byte for a register."""
        raise NotImplementedError
