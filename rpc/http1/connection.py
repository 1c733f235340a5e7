"""HTTP/1.1 connection of the port: gRPC-Web calls, pages and WebSockets, one request at a time.

`rpc.http.head` reads the heads of requests, `rpc.http1.framing` the rest of a message. Pipelined requests, which arrive
before the response to the previous request, are not served; that response closes the connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

import trio

from rpc.access.admission import ConnectionPlace
from rpc.call import ServerCore
from rpc.carrier import Headers, Peer
from rpc.http.asgi import ASGIApp, plain_response
from rpc.http.grpc_web import Content, content_of, is_grpc, is_preflight, preflight
from rpc.http.head import Head, HeadError, find_end, parse
from rpc.http.limits import HttpLimits
from rpc.http.wire import Outbox, Wire
from rpc.http1.exchange import PageExchange
from rpc.http1.framing import Body, Framer
from rpc.http1.grpc_web import Http1WebCarrier

_log = logging.getLogger("rpc.http1")

KEPT_HEADS: Final = 4
MAX_KEPT: Final = 4096  # bytes of a head that is kept


class Http1Connection:
    """HTTP/1.1 server connection on a wire, which `run` closes."""

    def __init__(
        self,
        wire: Wire,
        core: ServerCore,
        *,
        peer: Peer,
        scheme: str,
        app: ASGIApp | None,
        limits: HttpLimits,
        ticket: ConnectionPlace | None = None,
    ) -> None:
        self.wire = wire
        self.core = core
        self.peer = peer
        self.scheme = scheme
        self.app = app
        self.limits = limits
        self.ticket = ticket
        self.closing = trio.Event()
        self._body: Body | None = None  # of the current request; `_framer` writes its response
        self._framer: Framer | None = None
        self._out = Outbox(wire, self._gone)
        self._idle: trio.CancelScope | None = None
        self._callback: Callable[[], None] | None = None
        self._last = False  # no further request is served on this connection
        self._aborted = False  # the current response is not complete and will not be
        self._pending: list[bytes] = []  # of the response, not yet passed to `_out`
        self._early = b""  # content of the request that `whole` has taken
        self._watcher: trio.lowlevel.Task | None = None  # while it waits for the next call
        self._watched = False
        self._watching: trio.CancelScope | None = None
        self._unwatched = trio.Event()
        self._heads: dict[bytes, Head] = {}  # parsed: a page sends the same head with each call of a method
        self._waited = False  # has waited for more of the current request
        self._continue_expected = False  # the client waits for 100 Continue
        self._body_deadline = 0.0

    def drain(self) -> None:
        """Close after the response to the current request, or now if there is none."""
        self.closing.set()
        if self._idle is not None:
            self._idle.cancel()

    async def run(self) -> None:
        """Serve until the connection ends. Raises only Cancelled."""
        if not self.core.admit(self):
            await trio.aclose_forcefully(self.wire)
            return
        ended = False
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._out.run)
                nursery.start_soon(self._watch_calls)
                try:
                    while await self._serve_request():
                        pass
                except HeadError as error:
                    self._refuse(error)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    pass
                except Exception:
                    _log.exception("an HTTP/1.1 connection failed")
                with trio.move_on_after(self.core.limits.close_timeout):
                    await self.below(0)
                ended = True
                nursery.cancel_scope.cancel()
        finally:
            self.core.leave(self)
            if ended:
                await self.wire.linger(self.limits.linger, self.limits.drain)
            else:
                await trio.aclose_forcefully(self.wire)

    async def _serve_request(self) -> bool:
        """Serve one request. Returns True if another may follow."""
        self._body = self._framer = None
        raw, rest = await self._read_head()
        if not raw:
            return False
        head = self._heads.get(raw) or self._parsed(raw)
        if self.ticket is not None:
            self.ticket.count_for_client(head.fields)
        if self.app is not None and await self._websocket(self.app, head, raw + rest):
            return False
        self._body, self._framer = Body(head), Framer(head)
        self._body.feed(rest)
        self._continue_expected = not (self._body.ended or rest) and "100-continue" in head.tokens("expect")
        self._body_deadline = trio.current_time() + self.limits.body_grace
        await self._answer(head)
        self._callback = None
        self.flush()
        if not self._out.empty:
            await self._out.below(0)
        return await self._ready_for_another()

    def _parsed(self, raw: bytes) -> Head:
        head = parse(raw, self.limits, scheme=self.scheme)
        if len(raw) <= MAX_KEPT:
            if len(self._heads) >= KEPT_HEADS:
                self._heads.clear()
            self._heads[raw] = head
        return head

    async def _websocket(self, app: ASGIApp, head: Head, received: bytes) -> bool:
        if "websocket" not in head.tokens("upgrade"):
            return False
        from rpc.http1.websocket import is_upgrade, serve_websocket  # imports its libraries, so only when needed

        if not is_upgrade(head):
            return False
        self.wire.push_back(received)
        await serve_websocket(
            app,
            self.wire,
            head,
            scheme=self.scheme,
            peer=self.peer,
            limits=self.limits,
            farewell=self.core.limits.farewell,
            closing=self.closing,
            recognize=self.recognize,
        )
        return True

    async def _answer(self, head: Head) -> None:
        if head.tokens("expect") - {"100-continue"}:
            raise HeadError(417, "only the expectation 100-continue is supported")
        if is_preflight(head.method, head.first):
            self._check_origin(head)
            self._respond(204, preflight(head.first))
        elif head.method == "OPTIONS" and head.path == "*":
            self._respond(204, [])
        elif head.method == "TRACE":
            raise HeadError(405, "TRACE is not supported")
        elif is_grpc(head.get("content-type").strip().lower()):
            content = content_of(head.get("content-type"))
            if content is None or content is Content.GRPC:
                raise HeadError(415, "over HTTP/1.1 this server supports application/grpc-web+proto; gRPC needs HTTP/2")
            self._check_origin(head)
            await Http1WebCarrier(self, self.core, head, content).run()
        elif self.core.fallback is None:
            self._respond(404, *plain_response("there are no pages on this port"))
        else:
            await self._page(head)

    def _check_origin(self, head: Head) -> None:
        """Raise HeadError if the origin of a browser request may not call this server."""
        refusal = self.core.refuse_origin(self.scheme, head.host, head.get("origin") or None)
        if refusal is not None:
            raise HeadError(refusal.http, refusal.message)

    async def _page(self, head: Head) -> None:
        exchange = PageExchange(self, head, high_water=self.core.limits.send_high_water)
        async with trio.open_nursery() as nursery:
            self.on_gone(nursery.cancel_scope.cancel)
            nursery.start_soon(exchange.watch)
            nursery.start_soon(self._end_page, nursery.cancel_scope)
            try:
                assert self.core.fallback is not None
                await self.core.fallback(exchange)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
            except HeadError as error:
                self._refuse(error)
            except Exception:
                _log.exception("answering %s %s failed", head.method, head.path.partition("?")[0])
            nursery.cancel_scope.cancel()
        if not self._response.ended:
            self.abort()

    async def _end_page(self, page: trio.CancelScope) -> None:
        """Limit the remaining time of a page at shutdown, because it may stream without end."""
        await self.closing.wait()
        page.deadline = trio.current_time() + self.core.limits.farewell

    async def _read_head(self) -> tuple[bytes, bytes]:
        """Return the next request head and the bytes received after it; empty if there is no further request."""
        data = await self._first_bytes()
        if not data:
            return b"", b""
        if end := find_end(data, self.limits):
            return data[:end], data[end:]
        with trio.move_on_after(self.limits.head_timeout) as patience:
            while not (end := find_end(data, self.limits)):
                more = await self.wire.receive_some()
                if not more:
                    return b"", b""
                data += more
            return data[:end], data[end:]
        assert patience.cancelled_caught
        raise HeadError(408, f"the request's head took more than {self.limits.head_timeout:g} seconds")

    async def _first_bytes(self) -> bytes:
        with trio.CancelScope(deadline=trio.current_time() + self.limits.idle_timeout) as self._idle:
            if not self.closing.is_set():
                return await self.wire.receive_some()
        self._idle = None
        return b""

    async def _ready_for_another(self) -> bool:
        response, body = self._response, self._request
        if self._last or self.closing.is_set() or self._aborted or not response.ended or response.closes:
            return False
        self._waited = False
        if not body.ended and not await self._drained():
            return False
        if body.rest:
            if not self._waited:
                return False
            # next request of a client that got its response while this side still read the rest of its body
            self.wire.push_back(body.rest)
        return True

    async def _drained(self) -> bool:
        """Discard the rest of the request body. Returns False if it is too long or too slow."""
        rest = self.limits.drain
        with trio.move_on_after(self.limits.linger):
            while rest > 0:
                data = await self.receive()
                if not data:
                    return True
                rest -= len(data)
        return False

    @property
    def _request(self) -> Body:
        assert self._body is not None
        return self._body

    @property
    def _response(self) -> Framer:
        assert self._framer is not None
        return self._framer

    def _gone(self) -> None:
        self._last = True
        if self._callback is not None:
            self._callback()

    async def _watch_calls(self) -> None:
        """Watch for the peer's disconnection during calls: one task for all of them, because most end at once."""

        def abort(_: object) -> trio.lowlevel.Abort:
            return trio.lowlevel.Abort.SUCCEEDED

        while True:
            if not self._watched:
                self._watcher = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(abort)
                continue
            with trio.CancelScope() as self._watching:
                await self.watch()
            self._watching, self._watched = None, False
            self._unwatched.set()

    # For exchanges

    def recognize(self, *, key: bool) -> None:
        """Mark the connection as known after an admitted request; `key` is True if it presented a valid token."""
        if self.ticket is not None:
            self.ticket.recognize(key=key)

    def on_gone(self, callback: Callable[[], None]) -> None:
        """Call `callback` if the peer disconnects while this request is served."""
        self._callback = callback

    async def receive(self) -> bytes:
        """Return the next piece of the request body, empty at its end. HeadError if it is malformed or too slow."""
        body = self._request
        if self._early:
            content, self._early = self._early, b""
            return content
        while True:
            try:
                content = body.take()
            except HeadError:
                self._last = True
                raise
            if content:
                self._body_deadline += len(content) / self.limits.body_rate
                return content
            if body.ended:
                return b""
            if self._continue_expected:
                self._continue_expected = False
                if not self._response.started:
                    self._out.put(b"HTTP/1.1 100 Continue\r\n\r\n")
            with trio.move_on_at(self._body_deadline) as patience:
                try:
                    self._waited = True
                    data = await self.wire.receive_some()
                    if not data:
                        raise trio.BrokenResourceError("the peer disconnected in the middle of its request")
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    self._gone()
                    raise
                body.feed(data)
            if patience.cancelled_caught:
                self._last = True
                raise HeadError(408, "the request's body was sent too slowly")

    def whole(self) -> bytes | None:
        """Return the body of the request if all of it has arrived; otherwise None, and `receive` returns its pieces."""
        with suppress(HeadError):  # `receive` raises it again
            self._early = self._request.take()
        if not self._request.ended:
            return None
        content, self._early = self._early, b""
        return content

    def begin_watch(self) -> None:
        """Call the callback of `on_gone` if the peer disconnects before `end_watch`; the request must have ended."""
        self._watched = True
        task, self._watcher = self._watcher, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    async def end_watch(self) -> None:
        """Stop watching. Not a checkpoint if the call has ended at once."""
        self._watched = False
        if self._watching is not None:
            self._unwatched = trio.Event()
            self._watching.cancel()
            await self._unwatched.wait()

    async def watch(self) -> None:
        """Return when the peer disconnects or sends more bytes; call after the end of the request."""
        if self._request.rest:
            self._last = True
            return
        try:
            data = await self.wire.receive_some()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            data = b""
        if data and self._response.complete:  # the peer has the response, so this is not pipelining
            self.wire.push_back(data)
            return
        self._last = True
        if not data:
            self._gone()

    def start(self, status: int, headers: Headers) -> None:
        """Queue the response head."""
        fields = [*headers, ("date", formatdate(usegmt=True))]
        if self._last or self._continue_expected or self.closing.is_set():
            self._last = self._response.closes = True
        self._pending.append(self._response.head(status, _reason(status), fields))

    def body(self, data: bytes) -> None:
        """Queue a piece of the response body."""
        self._pending.append(self._response.content(data))

    def finish(self) -> None:
        """Queue the end of the response."""
        self._pending.append(self._response.end())
        self.flush()

    def abort(self) -> None:
        """Abort the response and serve no further request."""
        self._last = self._aborted = True

    def flush(self) -> None:
        """Write what is queued."""
        if self._pending:
            self._out.put(b"".join(self._pending))
            self._pending.clear()

    async def below(self, size: int) -> None:
        """Write what is queued, and wait until at most `size` bytes of the response are unwritten."""
        self.flush()
        await self._out.below(size)

    def _respond(self, status: int, headers: Headers, body: bytes = b"") -> None:
        self.start(status, headers)
        if body:
            self.body(body)
        self.finish()

    def _refuse(self, error: HeadError) -> None:
        """Answer a refused request and close the connection; no answer if a response has been started."""
        self._last = True
        if self._aborted or (self._framer is not None and self._framer.started):
            return
        self._aborted = True
        reason = _reason(error.status)
        fields, body = plain_response(f"{error.status} {reason}: {error.text}")
        fields += [*error.extra, ("date", formatdate(usegmt=True)), ("connection", "close")]
        head = f"HTTP/1.1 {error.status} {reason}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n"
        self._out.put(head.encode("latin-1") + body)


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
