"""Byte stream over a connection of binary messages, such as a WebSocket; message boundaries have no meaning."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

LARGEST: Final = 64 * 1024  # bytes in one sent message


class MessageStream(trio.abc.Stream):
    """Stream on three functions of the connection.

    `receive` returns the next message, empty when the peer has ended the connection in order. `send` sends one message
    and waits for back-pressure. `close` ends the connection. They raise BrokenResourceError if the connection is lost.
    """

    def __init__(
        self,
        receive: Callable[[], Awaitable[bytes]],
        send: Callable[[bytes], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self._receive = receive
        self._send = send
        self._close = close
        self._unread = b""
        self._closed = False

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next received bytes, at least one; empty at the end of the stream."""
        if self._closed:
            raise trio.ClosedResourceError
        if self._unread:
            await trio.lowlevel.checkpoint()
        else:
            self._unread = await self._receive()
        size = len(self._unread) if max_bytes is None else max_bytes
        data, self._unread = self._unread[:size], self._unread[size:]
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all of the data, waiting for the peer if necessary."""
        if self._closed:
            raise trio.ClosedResourceError
        with memoryview(data) as view:
            for start in range(0, len(view), LARGEST):
                await self._send(bytes(view[start : start + LARGEST]))

    async def wait_send_all_might_not_block(self) -> None:
        """Return at once: `send_all` is where the stream waits."""
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Close the stream; a task that waits for it gets `trio.ClosedResourceError`."""
        if not self._closed:
            self._closed = True
            await self._close()
