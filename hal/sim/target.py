"""What a simulated chip is to its bus: the far end of the wires, seen from its registers.

A chip is any object with these methods; they return at once and never block. The same objects serve the buses of the
simulated family and the emulated adapters of the rig, so they know nothing of either. A chip that changes with time is
given a clock when it is constructed.
"""

from __future__ import annotations

from typing import Protocol


class Nak(Exception):
    """Raised by a chip that does not acknowledge: its address, or a byte written to it.

    Who asked gets HalError (no acknowledge). Any other exception is a mistake in the chip's model and is not caught.
    """


class I2cTarget(Protocol):
    """A chip at one address of an I2C bus. A transaction calls `write` and `read` in the order of its messages."""

    def write(self, data: bytes) -> None:
        """One message to the chip, whole; empty when a master only asks who is there. `Nak` to refuse."""

    def read(self, n: int) -> bytes:
        """One message from the chip: exactly `n` bytes, 1 or more. `Nak` to refuse."""


class SpiTarget(Protocol):
    """A chip behind one chip select of an SPI bus."""

    def transfer(self, data: bytes) -> bytes:
        """All that is clocked while chip select is held; what comes back is exactly as long."""
