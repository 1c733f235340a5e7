"""HTTP request over HTTP/1.1 that is not gRPC, for `ServerCore.fallback`."""

from __future__ import annotations

from typing import Protocol

import trio

from rpc.carrier import Headers, Peer
from rpc.http.head import Head


class ExchangeConnection(Protocol):
    """Part of `rpc.http1.connection.Http1Connection` that an exchange uses."""

    scheme: str
    peer: Peer

    def recognize(self, *, key: bool) -> None:
        """Mark the connection as known after an admitted request; `key` is True if it presented a valid token."""
        ...

    async def receive(self) -> bytes:
        """Return the next piece of the request body, empty at its end."""
        ...

    async def watch(self) -> None:
        """Return when the peer disconnects or sends more bytes; call after the end of the request."""
        ...

    def start(self, status: int, headers: Headers) -> None:
        """Queue the response head."""
        ...

    def body(self, data: bytes) -> None:
        """Queue a piece of the response body."""
        ...

    def finish(self) -> None:
        """Queue the end of the response."""
        ...

    async def below(self, size: int) -> None:
        """Wait until at most `size` bytes of the response are unwritten."""
        ...


class PageExchange:
    """A request over HTTP/1.1, and its response. `send_body` waits while more than `high_water` bytes are unwritten."""

    def __init__(self, connection: ExchangeConnection, head: Head, *, high_water: int) -> None:
        self.http_version = head.version
        self.method = head.method
        self.scheme = connection.scheme
        self.authority = head.host
        self.path = head.path
        self.headers: Headers = [field for field in head.fields if field[0] != "host"]
        self.peer = connection.peer
        self.recognize = connection.recognize
        self._connection = connection
        self._high_water = high_water
        self._body_ended = trio.Event()
        if not head.get("transfer-encoding") and head.get("content-length") in ("", "0"):
            self._body_ended.set()

    async def watch(self) -> None:
        """Wait for the end of the request, then return when the peer disconnects or sends more bytes."""
        await self._body_ended.wait()
        await self._connection.receive()
        await self._connection.watch()

    async def receive(self) -> bytes:
        """Return the next piece of the request body, empty at its end, and return its bytes to flow control."""
        if self._body_ended.is_set():
            await trio.lowlevel.checkpoint()
            return b""
        try:
            data = await self._connection.receive()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            await trio.sleep_forever()  # the exchange is cancelled; an error would make the page respond to a lost peer
        if not data:
            self._body_ended.set()
        return data

    async def respond(self, status: int, headers: Headers) -> None:
        """Send the response head; call once."""
        self._connection.start(status, headers)
        await self._connection.below(self._high_water)

    async def send_body(self, data: bytes, *, end: bool) -> None:
        """Send a piece of the response body and wait for flow control; pass `end=True` with the last piece."""
        if data:
            self._connection.body(data)
        if end:
            self._connection.finish()
        await self._connection.below(self._high_water)
