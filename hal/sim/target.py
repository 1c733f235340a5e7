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


class Stall(Exception):
    """Raised by a USB device that refuses: a request (HalError unsupported), or data at an endpoint (HalError bus)."""


class UsbTarget(Protocol):
    """A USB device. Data to the host at bulk and interrupt endpoints is given with `SimUsbDevice.push`."""

    def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        """At most `length` bytes to the host. `Stall` to refuse."""

    def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes) -> None:
        """A request with `data` from the host. `Stall` to refuse."""

    def write(self, endpoint: int, data: bytes) -> None:
        """Data from the host at a bulk or interrupt endpoint. `Stall` to refuse."""
