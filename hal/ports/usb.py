"""USB devices without a kernel driver: control, bulk and interrupt transfers.

A device can be opened only once at a time. Writes and control transfers are executed one after the other, and
independently of them reads one after the other, so that a read that waits for data does not delay writes. No data is
lost if a read is cancelled: the next one returns it. Errors are HalError.
"""

from __future__ import annotations

from typing import NoReturn, Protocol

from schema import UsbIdentity as UsbIdentity


class UsbDevice(Protocol):
    """An open device."""

    @property
    def identity(self) -> UsbIdentity:
        """The complete identity of the device."""

    async def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        """Receive at most `length` bytes by a control transfer."""

    async def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes = b"") -> None:
        """Send data by a control transfer."""

    async def read(self, endpoint: int, length: int) -> bytes:
        """Wait for data of a bulk or interrupt endpoint (0x80 set) and return at most `length` bytes."""

    async def write(self, endpoint: int, data: bytes) -> None:
        """Send all of `data` to a bulk or interrupt endpoint."""

    async def lost(self) -> NoReturn:
        """Wait until the device is gone, then raise HalError (gone)."""
