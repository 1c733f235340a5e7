"""A stream with bytes pushed back and a bound on how long the peer may take none of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

SLICE: Final = 64 * 1024  # bytes; the unit in which a slow peer must make progress
RECEIVE: Final = 64 * 1024


class Wire(trio.abc.Stream):
    """What a connection reads and writes, over TCP or TLS, after its first bytes were looked at.

    `send_all` raises BrokenResourceError if the peer takes less than a slice in `stall` seconds. `gone` is set when the
    peer has ended its side, the connection has failed or this side has closed it.
    """

    def __init__(self, stream: trio.abc.Stream, *, pushed_back: bytes = b"", stall: float) -> None:
        self.stream = stream
        self.stall = stall
        self.gone = trio.Event()
        self._pushed_back = pushed_back

    def push_back(self, data: bytes) -> None:
        """Let `data` be received before anything else."""
        self._pushed_back = data + self._pushed_back

    def release(self) -> tuple[trio.abc.Stream, bytes]:
        """The stream below and what was pushed back, for somebody who reads it instead."""
        pushed_back, self._pushed_back = self._pushed_back, b""
        return self.stream, pushed_back

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """As `trio.abc.ReceiveStream`."""
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
        """As `trio.abc.SendStream`, with the bound."""
        with memoryview(data) as view:
            for start in range(0, len(view), SLICE) if len(view) > SLICE else (0,):
                with trio.move_on_after(self.stall) as scope:
                    await self.stream.send_all(view[start : start + SLICE])
                if scope.cancelled_caught:
                    self.gone.set()
                    await trio.aclose_forcefully(self.stream)
                    raise trio.BrokenResourceError("the peer reads too slowly")

    async def wait_send_all_might_not_block(self) -> None:
        """As `trio.abc.SendStream`."""
        await self.stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """As `trio.abc.AsyncResource`."""
        self.gone.set()
        await self.stream.aclose()

    async def linger(self, seconds: float, limit: int) -> None:
        """Close so that the last answer arrives: end our side, take at most `limit` bytes that still come, then close.

        Without this, unread bytes would make the kernel reset the connection and the peer lose the answer.
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
    """Bytes on their way to a wire, written by one task of its own.

    Whoever queues bytes may be cancelled at any time; what was queued is written whole, so the stream never breaks
    inside a frame. `run` returns when the wire fails, after calling `failed`.
    """

    def __init__(self, wire: Wire, failed: Callable[[], None]) -> None:
        self._wire = wire
        self._failed = failed
        self._queue: list[bytes] = []
        self._size = 0  # queued and being written
        self._wake = trio.Event()
        self._progress = trio.Event()
        self.broken = False

    def put(self, data: bytes) -> None:
        """Queue `data`; dropped silently once the wire has failed."""
        if data and not self.broken:
            self._queue.append(data)
            self._size += len(data)
            self._wake.set()

    async def below(self, size: int) -> None:
        """Wait until at most `size` bytes are not yet written, or the wire has failed. A checkpoint."""
        await trio.lowlevel.checkpoint()
        while self._size > size and not self.broken:
            await self._progress.wait()

    async def run(self) -> None:
        """Write until cancelled or the wire fails."""
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
        self._progress.set()
        self._progress = trio.Event()
