"""One HTTP request over HTTP/1.1 that is not gRPC, for `ServerCore.fallback`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from rpc.carrier import Headers
from rpc.http1_head import Head

if TYPE_CHECKING:
    from rpc.http1 import Http1Connection


class PageExchange:
    """See `rpc.carrier.HttpExchange`."""

    def __init__(self, connection: Http1Connection, head: Head) -> None:
        self.http_version = head.version
        self.method = head.method
        self.scheme = connection.scheme
        self.authority = head.host
        self.path = head.path
        self.headers: Headers = [field for field in head.fields if field[0] != "host"]
        self.peer = connection.peer
        self.recognize = connection.recognize
        self._connection = connection
        self._body_ended = trio.Event()
        if not head.get("transfer-encoding") and head.get("content-length") in ("", "0"):
            self._body_ended.set()

    async def watch(self) -> None:
        """Cancel the exchange when the peer goes away after its request."""
        await self._body_ended.wait()
        await self._connection.receive()
        await self._connection.watch()

    async def receive(self) -> bytes:
        """As HttpExchange."""
        if self._body_ended.is_set():
            await trio.lowlevel.checkpoint()
            return b""
        try:
            data = await self._connection.receive()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            await trio.sleep_forever()  # cancelled with its exchange; an error would make the page answer nobody
        if not data:
            self._body_ended.set()
        return data

    async def respond(self, status: int, headers: Headers) -> None:
        """As HttpExchange."""
        self._connection.start(status, headers)
        await trio.lowlevel.checkpoint()

    async def send_body(self, data: bytes, *, end: bool) -> None:
        """As HttpExchange."""
        if data:
            self._connection.body(data)
        if end:
            self._connection.finish()
        await self._connection.below(self._connection.core.limits.send_high_water)
