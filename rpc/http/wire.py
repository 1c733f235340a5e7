"""Byte stream with push-back and a time limit for a peer that does not read."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import trio

from support import ChangeSignal

SLICE: Final = 64 * 1024  # bytes that a slow peer must accept within the time limit
RECEIVE: Final = 64 * 1024


class Wire(trio.abc.Stream):
    """TCP or TLS stream of a connection whose first bytes may be pushed back.

    `send_all` raises BrokenResourceError if the peer does not accept a slice within `stall` seconds. `gone` is set when
    the peer has ended its side, the connection has failed or this side has closed it.
    """

    def __init__(self, stream: trio.abc.Stream, *, pushed_back: bytes = b"", stall: float) -> None:
        self.stream = stream
        self.stall = stall
        self.gone = trio.Event()
        self._pushed_back = pushed_back

    def push_back(self, data: bytes) -> None:
        """Push `data` back; it is received next."""
        self._pushed_back = data + self._pushed_back

    def release(self) -> tuple[trio.abc.Stream, bytes]:
        """Return the underlying stream and the pushed-back bytes to a new owner."""
        pushed_back, self._pushed_back = self._pushed_back, b""
        return self.stream, pushed_back

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next received bytes, at least one; empty at the end of the stream."""
        if self._pushed_back:
            await trio.lowlevel.checkpoint()
            size = len(self._pushed_back) if max_bytes is None else max_bytes
            data, self._pushed_back = self._pushed_back[:size], self._pushed_back[size:]
            return data
        try:
            data = bytes(await self.stream.receive_some(RECEIVE if max_bytes is None else max_bytes))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.gone.set()
            raise
        if not data:
            self.gone.set()
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all of the data; each slice has the time limit `stall`."""
        with memoryview(data) as view:
            for start in range(0, len(view), SLICE) if len(view) > SLICE else (0,):
                with trio.move_on_after(self.stall) as scope:
                    await self.stream.send_all(view[start : start + SLICE])
                if scope.cancelled_caught:
                    self.gone.set()
                    await trio.aclose_forcefully(self.stream)
                    raise trio.BrokenResourceError("the peer reads too slowly")

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the transport might accept data."""
        await self.stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """Close the stream; a task that waits for it gets `trio.ClosedResourceError`."""
        self.gone.set()
        await self.stream.aclose()

    async def linger(self, seconds: float, limit: int) -> None:
        """Close so that the peer can read the last response: end this side, discard up to `limit` bytes, then close.

        Takes at most `seconds`. Without this, unread bytes would make the kernel reset the connection, and the peer
        could lose the response.
        """
        try:
            with trio.move_on_after(seconds):
                if isinstance(self.stream, trio.abc.HalfCloseableStream):
                    await self.stream.send_eof()
                    while limit > 0 and (data := await self.receive_some()):
                        limit -= len(data)
                else:
                    await self.stream.aclose()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.gone.set()
            await trio.aclose_forcefully(self.stream)


class Outbox:
    """Write queue of a wire, emptied by a separate task; a plain socket takes bytes at once if it has room.

    Tasks that queue bytes may be cancelled at any time; queued bytes are written completely, so the stream is never
    interrupted inside a frame. When the wire fails, `run` calls `failed` and returns.
    """

    def __init__(self, wire: Wire, failed: Callable[[], None]) -> None:
        self._wire = wire
        self._socket = wire.stream.socket if isinstance(wire.stream, trio.SocketStream) else None
        self._failed = failed
        self._queue: list[bytes] = []
        self._size = 0  # queued and being written
        self._wake = trio.Event()
        self._progress = ChangeSignal()
        self.broken = False

    def put(self, data: bytes) -> None:
        """Queue `data`; discarded if the wire has failed."""
        if self._socket is not None and not self._size and not self.broken and data:
            with suppress(OSError):  # it has no room, or is closed or has failed: `run` finds out
                data = data[os.write(self._socket.fileno(), data) :]
        if data and not self.broken:
            self._queue.append(data)
            self._size += len(data)
            self._wake.set()

    @property
    def empty(self) -> bool:
        """Whether all bytes are written."""
        return not self._size

    async def below(self, size: int) -> None:
        """Wait until at most `size` bytes are unwritten or the wire has failed. Always a checkpoint."""
        await trio.lowlevel.checkpoint()
        while self._size > size and not self.broken:
            await self._progress.next.wait()

    async def run(self) -> None:
        """Write queued bytes until cancelled or the wire fails."""
        try:
            while True:
                await self._wake.wait()
                self._wake = trio.Event()
                data = b"".join(self._queue)
                self._queue.clear()
                await self._wire.send_all(data)
                self._size -= len(data)
                self._advance()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._failed()
        finally:
            self.broken = True
            self._advance()

    def _advance(self) -> None:
        self._progress.announce()
