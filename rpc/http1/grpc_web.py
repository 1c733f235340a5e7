"""gRPC-Web call over HTTP/1.1 as a carrier for `rpc.call`; the last frame of the chunked response has the trailers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc.call import Refusal, ServerCall, ServerCore, accept
from rpc.carrier import Headers, MutableHeaders, Peer
from rpc.http.grpc_web import Content, TextDecoder, call_headers, cors, to_text, trailers_frame
from rpc.http.head import Head, HeadError
from rpc.inbox import Budget
from rpc.turns import Flow

SID: Final = 1  # HTTP/1.1 carries one call at a time
SMALL: Final = 64 * 1024  # bytes of a reply that is written together with its trailers


class Http1Exchange(Protocol):
    """Part of the HTTP/1.1 connection that a call uses."""

    peer: Peer

    def start(self, status: int, headers: Headers) -> None:
        """Queue the response head."""
        ...

    def body(self, data: bytes) -> None:
        """Queue a piece of the response body."""
        ...

    def finish(self) -> None:
        """Queue the end of the response."""
        ...

    def abort(self) -> None:
        """Abort the connection, so that the peer does not take a partial response for a complete one."""
        ...

    def flush(self) -> None:
        """Write what is queued."""
        ...

    async def below(self, size: int) -> None:
        """Wait until at most `size` bytes of the response are unwritten."""
        ...

    async def receive(self) -> bytes:
        """Return the next piece of the request body, empty at its end. HeadError if it is malformed or too slow."""
        ...

    def whole(self) -> bytes | None:
        """Return the body of the request if all of it has arrived, otherwise None."""
        ...

    def begin_watch(self) -> None:
        """Call the callback of `on_gone` if the peer disconnects before `end_watch`."""
        ...

    async def end_watch(self) -> None:
        """Stop watching."""
        ...

    async def watch(self) -> None:
        """Return when the peer disconnects or sends more bytes; call after the end of the request."""
        ...

    def on_gone(self, callback: Callable[[], None]) -> None:
        """Set the callback for the disconnection of the peer."""
        ...

    def recognize(self, *, key: bool) -> None:
        """Report an admitted request; `key` is True if it presented a valid token."""
        ...


class Http1WebCarrier:
    """Carrier that serves one call."""

    def __init__(self, exchange: Http1Exchange, core: ServerCore, head: Head, content: Content) -> None:
        self.exchange = exchange
        self.core = core
        self.head = head
        self.content = content
        self.budget = Budget(core.limits.max_buffered)
        self.flow = Flow()
        self.gone = False
        self._unary = False  # and its request has arrived
        self._unread = 0
        self._read = trio.Event()

    @property
    def peer(self) -> Peer:
        """Remote end of the connection."""
        return self.exchange.peer

    async def run(self) -> None:
        """Run the call, or refuse it; return when the response is queued. HeadError for a non-gRPC refusal."""
        head = self.head
        headers = [(":method", head.method), (":path", head.path), (":authority", head.host)]
        headers = call_headers(self.content, [*headers, *head.fields])
        decision = accept(self, SID, headers, self.core, web=True)
        if isinstance(decision, Refusal):
            self._refuse(decision)
            return
        self.exchange.recognize(key=decision.identity is not None)
        self.exchange.on_gone(lambda: self._leave(decision))
        if self.content is Content.WEB and (body := self.exchange.whole()) is not None:
            self._unary = not decision.streaming
            self._unread = len(body)
            decision.feed(body, len(body))
            decision.end()
            self.exchange.begin_watch()
            try:
                await decision.run()
            finally:
                await self.exchange.end_watch()
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._feed, decision)
            await decision.run()
            nursery.cancel_scope.cancel()

    def _refuse(self, refusal: Refusal) -> None:
        if refusal.http != 200:
            raise HeadError(refusal.http, refusal.message, *refusal.extra)
        status = ("grpc-status", str(refusal.status.value))
        self.exchange.start(200, [*self._head(), status, *refusal.headers, ("content-length", "0")])
        self.exchange.finish()

    def _leave(self, call: ServerCall) -> None:
        self.gone = True
        self._read.set()
        call.cancel_by_peer()

    async def _feed(self, call: ServerCall) -> None:
        """Pass the request to the call as fast as the call reads it, then watch for disconnection."""
        decoder = TextDecoder() if self.content is Content.WEB_TEXT else None
        window = self.core.limits.stream_window
        try:
            while data := await self.exchange.receive():
                if decoder is not None:
                    data = decoder.feed(data)
                self._unread += len(data)
                call.feed(data, len(data))
                while self._unread > window and not self.gone:
                    self._read = trio.Event()
                    await self._read.wait()
            if decoder is not None:
                decoder.end()
        except (HeadError, ValueError) as error:
            call.fail(GRPCError(Status.INVALID_ARGUMENT, f"the request's body cannot be read: {error}"))
            return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._leave(call)
            return
        call.end()
        await self.exchange.watch()

    def _head(self) -> MutableHeaders:
        return [("content-type", f"{self.content.value}+proto"), *cors(self.head.get("origin") or None)]

    def _frame(self, data: bytes | bytearray) -> None:
        self.exchange.body(to_text(data) if self.content is Content.WEB_TEXT else bytes(data))

    # Carrier

    def send_headers(self, sid: int, extra: Headers) -> None:
        """Queue the response headers: status 200, content type and `extra`, the initial metadata."""
        if not self.gone:
            self.exchange.start(200, [*self._head(), *extra])
            if not self._unary:
                self.exchange.flush()

    async def send_message(self, sid: int, data: bytes | bytearray) -> None:
        """Send one message, including its 5-byte prefix, in order, and wait for flow control."""
        if self.gone:
            raise StreamTerminatedError("the client has disconnected")
        self._frame(data)
        if self._unary and len(data) <= SMALL:
            return  # the trailers follow at once, in the same write
        await self.exchange.below(self.core.limits.send_high_water)

    def send_trailers(self, sid: int, status: int, extra: Headers, *, headers_sent: bool) -> None:
        """Queue the end of the response: the gRPC status and `extra` (grpc-message, trailing metadata)."""
        if self.gone:
            return
        if headers_sent:
            self._frame(trailers_frame(status, extra))
        else:
            only = [("grpc-status", str(status)), *extra, ("content-length", "0")]
            self.exchange.start(200, [*self._head(), *only])
        self.exchange.finish()

    def reset(self, sid: int, code: int) -> None:
        """Abort the call with an HTTP/2 error code."""
        self.gone = True
        self.exchange.abort()

    def consumed(self, sid: int, n: int) -> None:
        """Return `n` flow-controlled bytes, which the call has consumed, to the window."""
        self._unread -= n
        self._read.set()

    def forget(self, sid: int) -> None:
        """Do nothing; the exchange ends with the call."""
