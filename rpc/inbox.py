"""Receive buffer of one call, split into messages on demand.

Messages are not split ahead of reading: a peer that sends a million empty messages costs the bytes it sent, not a
million objects. Bytes are returned to flow control when their message is read. The bytes of an incomplete message are
returned at once, because it may be larger than any window.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.parsing import Steps, inflating, one_by_one

PREFIX: Final = 5  # bytes of flag and length before each message
LARGE: Final = 64 * 1024  # bytes; a message above this is not copied by `get_framed`
_pack_prefix = struct.Struct(">BI").pack
_unpack_prefix = struct.Struct(">BI").unpack_from


class Budget:
    """Count and limit of bytes received but not yet read, for all calls of one connection."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0


class Credit(Protocol):
    """Flow control method of Carrier that an inbox uses."""

    def consumed(self, sid: int, n: int) -> None:
        """Return `n` bytes to the window."""
        ...


class Inbox:
    """Received messages of one call. One task at a time may wait in `get`."""

    __slots__ = (
        "_buffer",
        "_carrier",
        "_credited",
        "_encoding",
        "_ended",
        "_error",
        "_need",
        "_pos",
        "_sid",
        "_waiter",
        "budget",
        "inflate",
        "max_message",
    )

    def __init__(
        self, carrier: Credit, sid: int, *, max_message: int, budget: Budget, encoding: str | None = None
    ) -> None:
        self._carrier = carrier
        self._sid = sid
        self.max_message = max_message
        self._encoding = encoding  # one of metadata.COMPRESSIONS, or None for identity
        self.budget = budget
        # runs the steps of decompressing a message
        self.inflate: Callable[[Steps[bytes]], Awaitable[bytes]] = one_by_one
        self._buffer: bytes | bytearray = b""
        self._pos = 0  # start of the first message
        self._need = 0  # its length including the prefix; 0 while unknown
        self._credited = 0  # bytes from _pos on that were already returned to flow control
        self._ended = False
        self._error: Exception | None = None
        self._waiter: trio.lowlevel.Task | None = None

    def feed(self, data: bytes | bytearray, flow: int) -> None:
        """Add received `data`, which the caller no longer uses; `flow` is its flow-controlled size, with padding."""
        n = len(data)
        if self._error is not None:
            self._carrier.consumed(self._sid, flow)
            return
        if flow > n:
            self._carrier.consumed(self._sid, flow - n)
        budget = self.budget
        budget.used += n
        if self._pos < len(self._buffer):
            if isinstance(self._buffer, bytes):
                self._buffer = bytearray(memoryview(self._buffer)[self._pos :])
                self._pos = 0
            self._buffer += data
        else:
            self._buffer = data
            self._pos = 0
        if budget.used > budget.limit:
            self.fail(GRPCError(Status.RESOURCE_EXHAUSTED, "too many unread bytes on this connection"))
        elif self._head_is_complete() and self._waiter is not None:
            self._wake()

    def end(self) -> None:
        """Mark the end of the request."""
        self._ended = True
        if self._waiter is not None:
            self._wake()

    def fail(self, error: Exception) -> None:
        """Make every further `get` raise `error` and drop buffered bytes. Only the first error counts."""
        if self._error is None:
            self._error = error
        self.drop()
        if self._waiter is not None:
            self._wake()

    def drop(self) -> None:
        """Drop buffered bytes and return them to the window."""
        rest = len(self._buffer) - self._pos
        if rest:
            self.budget.used -= rest
            if rest > self._credited:
                self._carrier.consumed(self._sid, rest - self._credited)
        self._buffer = b""
        self._pos = self._need = self._credited = 0

    async def get(self) -> bytes | None:
        """Return the next message, None at the end. Not a checkpoint if an uncompressed message is available.

        Raises GRPCError for a message that is too large, cannot be decompressed or is truncated; the error of `fail`;
        and BusyResourceError if another task is waiting.
        """
        if not await self._is_next_complete():
            return None
        need, pos, buffer = self._need, self._pos, self._buffer
        compressed = buffer[pos]
        end = pos + need
        if isinstance(buffer, bytes):
            message = buffer[pos + PREFIX : end]
        else:
            with memoryview(buffer) as view:
                message = bytes(view[pos + PREFIX : end])
        self._return_credit(need)
        self._advance(end)
        return await self.inflate(inflating(message, self.max_message)) if compressed else message

    async def get_framed(self) -> bytes | bytearray | None:
        """Return the next message, None at the end.

        The message is uncompressed and has its prefix. A large one is not copied.
        """
        if not await self._is_next_complete():
            return None
        need, pos, buffer = self._need, self._pos, self._buffer
        if buffer[pos]:
            message = await self.get()
            return None if message is None else _pack_prefix(0, len(message)) + message
        end = pos + need
        framed: bytes | bytearray
        if isinstance(buffer, bytes) or need <= LARGE:
            framed = buffer[pos:end]
            self._return_credit(need)
            self._advance(end)
        else:
            framed, self._buffer, self._pos = buffer, buffer[end:], 0  # what follows is at most a window
            del framed[end:], framed[:pos]
            self._return_credit(need)
        return framed

    def _advance(self, end: int) -> None:
        """Drop the bytes before `end`."""
        buffer = self._buffer
        if end == len(buffer):
            self._buffer = b""
            self._pos = 0
        else:
            self._pos = end
            if isinstance(buffer, bytearray) and end > LARGE:
                del buffer[:end]
                self._pos = 0

    async def _is_next_complete(self) -> bool:
        """Wait for the next message; return False at the end. Raises the errors of `get`."""
        while not self._head_is_complete():
            if self._error is not None:
                raise self._error
            if self._ended:
                if self._pos < len(self._buffer):
                    self.fail(GRPCError(Status.INTERNAL, "the stream ended in the middle of a message"))
                    continue
                return False
            if self._waiter is not None:
                raise trio.BusyResourceError("another task already waits for a message of this call")
            self._waiter = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._abort)
        return True

    def _return_credit(self, need: int) -> None:
        """Return the bytes of a message that was taken to flow control."""
        self._need = 0
        self.budget.used -= need
        credited = self._credited
        if credited < need:
            self._credited = 0
            self._carrier.consumed(self._sid, need - credited)
        else:
            self._credited = credited - need

    def _head_is_complete(self) -> bool:
        """Return True if the first message is complete; otherwise return its bytes to the window."""
        have = len(self._buffer) - self._pos
        need = self._need
        if not need and have >= PREFIX:
            flag, length = _unpack_prefix(self._buffer, self._pos)
            if length > self.max_message:
                text = f"message of {length} bytes is larger than the limit of {self.max_message}"
                self.fail(GRPCError(Status.RESOURCE_EXHAUSTED, text))
                return False
            if flag and (flag != 1 or self._encoding is None):
                self.fail(GRPCError(Status.INTERNAL, f"message with flag {flag}, which grpc-encoding does not allow"))
                return False
            need = self._need = length + PREFIX
        if need and have >= need:
            return True
        if have > self._credited:
            owed, self._credited = have - self._credited, have
            self._carrier.consumed(self._sid, owed)
        return False

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        assert waiter is not None
        trio.lowlevel.reschedule(waiter)

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        self._waiter = None
        return trio.lowlevel.Abort.SUCCEEDED
