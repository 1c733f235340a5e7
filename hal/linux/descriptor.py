"""A Trio byte stream on the descriptor of a terminal, without a thread."""

from __future__ import annotations

import os
from typing import Final

import trio

from hal.errors import Fault, HalError

CHUNK: Final = 65536  # maximum bytes of one read


class DescriptorStream(trio.abc.Stream):
    """A stream that owns a non-blocking descriptor. One reader and one writer at a time.

    Raises HalError (gone) when the device vanishes and `trio.ClosedResourceError` after `aclose`.
    """

    def __init__(self, fd: int, name: str) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self.name = name
        self._receiving = trio.Lock()
        self._sending = trio.Lock()

    def fileno(self) -> int:
        """Return the descriptor; -1 when closed."""
        return self._fd

    def _open_fd(self) -> int:
        if self._fd < 0:
            raise trio.ClosedResourceError(f"{self.name} is closed")
        return self._fd

    def _gone(self, why: str) -> HalError:
        return HalError(f"{self.name}: {why}", Fault.GONE)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Wait for data and return at least one byte."""
        async with self._receiving:
            while True:
                fd = self._open_fd()
                try:
                    data = os.read(fd, max_bytes or CHUNK)
                except BlockingIOError:
                    await trio.lowlevel.wait_readable(fd)
                    continue
                except OSError as error:
                    raise self._gone(error.strerror or "read failed") from error
                if not data:
                    raise self._gone("the device has vanished")
                return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all data; return when the kernel has accepted it. If cancelled, a part may have been sent."""
        async with self._sending:
            view = memoryview(data)
            while view:
                fd = self._open_fd()
                try:
                    view = view[os.write(fd, view) :]
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(fd)
                except OSError as error:
                    raise self._gone(error.strerror or "write failed") from error

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the kernel accepts at least one byte."""
        async with self._sending:
            await trio.lowlevel.wait_writable(self._open_fd())

    def close(self) -> None:
        """Close at once; waiting tasks raise ClosedResourceError."""
        if self._fd >= 0:
            os.close(self.detach())

    def detach(self) -> int:
        """Release the descriptor without closing it; waiting tasks raise ClosedResourceError."""
        fd, self._fd = self._open_fd(), -1
        trio.lowlevel.notify_closing(fd)
        return fd

    async def aclose(self) -> None:
        """Close at once; see `close`."""
        self.close()
        await trio.lowlevel.checkpoint()
