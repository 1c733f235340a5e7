"""Write queue of a connection: everything queued in one pass of the scheduler is sent in one write."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

import trio

from rpc.errors import Reason
from rpc.limits import Limits

DIRECT: Final = sys.platform != "win32"  # there, os.read and os.write refuse the descriptor of a socket
_SLICE = 65536  # bytes that a slow peer must accept within `write_stall`


class Writer:
    """Queue of bytes for one Trio stream, and the task that writes them.

    `put` never blocks; callers with much data wait in `space` first. `run` calls `on_lost` and ends when the peer is
    gone or accepts nothing for `limits.write_stall` seconds.
    """

    __slots__ = (
        "_broken",
        "_chunks",
        "_ending",
        "_fd",
        "_limits",
        "_on_lost",
        "_rest",
        "_room",
        "_scope",
        "_stream",
        "_task",
        "aborted",
        "acks",
        "size",
    )

    def __init__(self, stream: trio.abc.Stream, limits: Limits, on_lost: Callable[[Reason | None], None]) -> None:
        self._stream = stream
        # Writing directly to a plain socket avoids Trio's checkpoints and lock; a TLS stream must write itself.
        self._fd = stream.socket.fileno() if DIRECT and isinstance(stream, trio.SocketStream) else -1
        self._limits = limits
        self._on_lost = on_lost
        self._chunks: list[bytes | bytearray | memoryview] = []
        self._rest: bytes | bytearray | memoryview = b""  # bytes being written
        self._room: trio.lowlevel.ParkingLot | None = None  # callers in `space`
        self._task: trio.lowlevel.Task | None = None  # the writer task while it is idle
        self._broken = False
        self.aborted = False
        self._ending = False
        self._scope = trio.CancelScope(shield=True)
        self.size = 0  # bytes not yet passed to the kernel
        self.acks = 0  # acknowledgements queued since the last write, counted by the connection

    def put(self, data: bytes | bytearray | memoryview) -> None:
        """Queue `data` for the next write."""
        self._chunks.append(data)
        self.size += len(data)
        task = self._task
        if task is not None:
            self._task = None
            trio.lowlevel.reschedule(task)

    async def space(self) -> None:
        """Wait until the queue is at or below the high-water mark. Not a checkpoint if it already is."""
        while self.size > self._limits.send_high_water:
            if self._room is None:
                self._room = trio.lowlevel.ParkingLot()
            await self._room.park()

    async def run(self) -> None:
        """Write queued bytes until `end` is called or the peer is lost.

        Shielded, because a cancelled write would break a TLS stream and lose the last responses of the connection.
        """
        with self._scope:
            await self._run()

    def end(self) -> None:
        """Let `run` return once the queue is empty, at the latest after `limits.close_timeout`."""
        self._ending = True
        self._scope.deadline = trio.current_time() + self._limits.close_timeout
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    def abort(self) -> None:
        """Discard the queue and let `run` return at once."""
        self.aborted = self._broken = True
        self._chunks.clear()
        self._scope.cancel()

    async def _run(self) -> None:
        chunks = self._chunks
        while True:
            if not chunks:
                if self._ending:
                    return
                self._task = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._abort)
                continue
            self._take()
            try:
                await self._write()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._broken = True
                self._on_lost(None)
                return
            except trio.TooSlowError:
                self._broken = True
                self._on_lost("slow reader")
                return
            if self._room is not None:
                self._room.unpark_all()
                self._room = None

    async def finish(self) -> bool:
        """Write the remaining bytes after `run` has ended. Returns False if that fails."""
        if self._broken:
            return False
        try:
            await self._write()
            while self._chunks:
                self._take()
                await self._write()
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            return False
        return True

    def _take(self) -> None:
        chunks = self._chunks
        self._rest = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self.acks = 0

    async def _write(self) -> None:
        """Write `_rest`. Cancellation keeps the unwritten bytes for a socket, but breaks a TLS stream."""
        if self._fd < 0:
            await self._write_stream()
            return
        data = self._rest
        while data:
            try:
                n = os.write(self._fd, data)
            except BlockingIOError:
                with trio.fail_after(self._limits.write_stall):
                    await trio.lowlevel.wait_writable(self._fd)
                continue
            except OSError as error:
                raise trio.BrokenResourceError("the peer has disconnected") from error
            self.size -= n
            data = self._rest = memoryview(data)[n:] if n < len(data) else b""

    async def _write_stream(self) -> None:
        data, self._rest = self._rest, b""
        self._broken = True  # until the write completes, because a partial TLS record cannot be continued
        with memoryview(data) as view:
            for start in range(0, len(view), _SLICE):
                piece = view[start : start + _SLICE]
                with trio.fail_after(self._limits.write_stall):
                    await self._stream.send_all(piece)
                self.size -= len(piece)
        self._broken = False

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED
