"""HTTP request over HTTP/2 that is not gRPC, for `ServerCore.fallback`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

import trio
from grpclib.exceptions import StreamTerminatedError

from rpc.carrier import Headers, HttpExchange, Recognize
from rpc.errors import ENHANCE_YOUR_CALM, INTERNAL_ERROR, StreamFault
from rpc.http2.connection import Connection

_log = logging.getLogger("rpc.http2")


class Exchange:
    """A request over HTTP/2, and its response. INTERNAL_ERROR resets it if the fallback ends before the response."""

    http_version = "2"

    def __init__(
        self,
        connection: Connection,
        sid: int,
        headers: Headers,
        fields: Mapping[str, str],
        fallback: Callable[[HttpExchange], Awaitable[None]],
        *,
        scheme: str,
        recognize: Recognize,
    ) -> None:
        self._connection = connection
        self._sid = sid
        self._fallback = fallback
        self.method = fields[":method"]
        self.scheme = scheme
        self.authority = fields.get(":authority") or fields.get("host", "")
        self.path = fields[":path"]
        self.headers: Headers = [field for field in headers if field[0][0] != ":" and field[0] != "host"]
        self.peer = connection.peer
        self.recognize = recognize
        self._body = bytearray()  # not a list of pieces, because a peer may send single bytes
        self._flow = 0  # flow-controlled bytes of `_body`
        self._ended = False
        self._arrived = trio.Event()
        self._scope = trio.CancelScope()
        self._gone = False
        self._responded = self._finished = False

    async def receive(self) -> bytes:
        """Return the next piece of the request body, empty at its end."""
        while not self._body:
            if self._ended:
                await trio.lowlevel.checkpoint()
                return b""
            self._arrived = trio.Event()
            await self._arrived.wait()
        data, self._body = bytes(self._body), bytearray()
        flow, self._flow = self._flow, 0
        self._connection.budget.used -= len(data)
        self._connection.consumed(self._sid, flow)
        return data

    async def respond(self, status: int, headers: Headers) -> None:
        """Send the response head."""
        if self._responded:
            raise RuntimeError("the response has already begun")
        self._responded = True
        self._connection.send_block(self._sid, [(":status", str(status)), *headers], end=False)
        await trio.lowlevel.checkpoint()

    async def send_body(self, data: bytes, *, end: bool) -> None:
        """Send a piece of the response body."""
        if not self._responded or self._finished:
            raise RuntimeError("the response has not begun or has already ended")
        self._finished = end
        try:
            await self._connection.send_data(self._sid, data, end=end)
        except StreamTerminatedError:
            self._scope.cancel()  # raising would be reported as a failure of the application
        await trio.lowlevel.checkpoint()

    # For the connection

    def feed(self, data: bytes, flow: int) -> None:
        """Add bytes of the request body; `flow` is their flow-controlled size."""
        self._body += data
        self._flow += flow
        budget = self._connection.budget
        budget.used += len(data)
        if budget.used > budget.limit:
            fault = StreamFault(ENHANCE_YOUR_CALM, "buffered bytes", "too many unread bytes on this connection")
            self._connection.stream_fault(self._sid, fault)
        self._arrived.set()

    def end(self) -> None:
        """Mark the end of the request."""
        self._ended = True
        self._arrived.set()

    def cancel_by_peer(self) -> None:
        """Cancel the fallback because the peer has reset the stream or disconnected."""
        self._gone = True
        self._scope.cancel()

    def drain(self) -> None:
        """Limit the remaining time to `limits.farewell` at shutdown, because a response may stream without end."""
        self._scope.deadline = trio.current_time() + self._connection.limits.farewell

    async def run(self) -> None:
        """Run the fallback and release the stream. Raises only Cancelled, from an outer cancellation."""
        try:
            with self._scope:
                await self._fallback(self)
        except Exception:
            if not self._gone:
                _log.exception("%s %s failed", self.method, self.path)
        finally:
            self._connection.budget.used -= len(self._body)
            self._body = bytearray()
            if not self._finished and not self._gone:
                self._connection.reset(self._sid, INTERNAL_ERROR)
            self._connection.forget(self._sid)
