"""The interfaces of simulated chips and devices for their buses.

A chip is any object with these methods, which must not block. The same objects are used on buses of the simulated
family and on emulated adapters of the rig, so they depend on neither. A chip that changes with time gets a clock in its
constructor.
"""

from __future__ import annotations

from typing import Protocol


class Nak(Exception):
    """Raised by a chip that does not acknowledge its address or a byte.

    The caller of the bus gets HalError (no acknowledge). Other exceptions are bugs of the chip and are not caught.
    """


class I2cTarget(Protocol):
    """A chip at an address of an I2C bus. A transaction calls `write` and `read` in the order of its messages."""

    def write(self, data: bytes) -> None:
        """Receive a complete message, which is empty for a probe. Raise Nak to reject it."""

    def read(self, n: int) -> bytes:
        """Return a message of exactly `n` bytes, 1 or more. Raise Nak to reject the request."""


class SpiTarget(Protocol):
    """A chip at a chip select of an SPI bus."""

    def transfer(self, data: bytes) -> bytes:
        """Receive all data that is sent while chip select is held; return an answer of the same length."""


class Stall(Exception):
    """Raised by a USB device that rejects a request (HalError unsupported) or data at an endpoint (HalError bus)."""


class UsbTarget(Protocol):
    """A USB device. It sends data at bulk and interrupt endpoints with `SimUsbDevice.push`."""

    def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        """Return at most `length` bytes for the host. Raise Stall to reject the request."""

    def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes) -> None:
        """Handle a request with `data` from the host. Raise Stall to reject it."""

    def write(self, endpoint: int, data: bytes) -> None:
        """Handle data from the host at a bulk or interrupt endpoint. Raise Stall to reject it."""
