"""USB devices without a kernel driver of their own: control, bulk and interrupt transfers.

A device belongs to whoever opened it. Writes and control transfers are carried out one after the other, and beside them
reads one after the other: a read that waits for data delays no write. Cancelled, a read loses nothing: what arrives for
it is what the next one returns. Errors are HalError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, Protocol


@dataclass(frozen=True, slots=True)
class UsbIdentity:
    """Which device is meant: vendor and product, and where several are alike, the serial number or the physical port.

    `port` is the kernel's name of the place (`1-1.4`), which stays the same for the same socket.
    """

    vendor: int
    product: int
    serial: str = ""
    port: str = ""

    def __str__(self) -> str:
        place = f" at {self.port}" if self.port else ""
        return f"USB {self.vendor:04x}:{self.product:04x}{f' serial {self.serial}' if self.serial else ''}{place}"


class UsbDevice(Protocol):
    """One open device."""

    @property
    def identity(self) -> UsbIdentity:
        """The device that was found, complete."""

    async def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        """A control transfer from the device: at most `length` bytes."""

    async def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes = b"") -> None:
        """A control transfer to the device."""

    async def read(self, endpoint: int, length: int) -> bytes:
        """Wait for data of a bulk or interrupt endpoint (0x80 set): at most `length` bytes."""

    async def write(self, endpoint: int, data: bytes) -> None:
        """Send all of `data` to a bulk or interrupt endpoint."""

    async def lost(self) -> NoReturn:
        """Wait until the device is gone, then raise HalError (gone)."""
