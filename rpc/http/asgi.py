"""ASGI 3 server on Trio for requests that are not gRPC, for any HTTP version.

The application runs in the task of its exchange, which the carrier cancels when the peer disconnects; `receive`
therefore reports `http.disconnect` only after the response has ended. Applications get no lifespan scope; their creator
provides their resources. Endpoints should be coroutines, because Starlette runs plain functions in worker threads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

import structlog
import trio

from rpc.carrier import Headers, HttpExchange, Peer, Recognize
from rpc.http.head import HeadError
from rpc.http.limits import HttpLimits

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
RECOGNIZE: Final = "rpc.recognize"  # scope key of a carrier.Recognize
ASGIApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

# RFC 9113 8.2.2: connection-specific fields, which the carrier sets itself
_OF_THE_CONNECTION: Final = frozenset({"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"})

_log = structlog.stdlib.get_logger("rpc.http")


def fallback(app: ASGIApp, limits: HttpLimits) -> Callable[[HttpExchange], Awaitable[None]]:
    """Return a `ServerCore.fallback` that answers each exchange with `app`."""

    async def answer(exchange: HttpExchange) -> None:
        await _Bridge(app, exchange, limits).run()

    return answer


def scope_of(
    kind: str,
    *,
    version: str,
    scheme: str,
    authority: str,
    target: str,
    headers: Headers,
    peer: Peer,
    recognize: Recognize | None = None,
) -> dict[str, Any]:
    """Return the scope keys common to HTTP and WebSocket."""
    path, _, query = target.partition("?")
    address = peer.address
    client = (str(address[0]), int(address[1])) if isinstance(address, tuple) and len(address) >= 2 else None
    fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers if name != "host"]
    if authority:
        fields.insert(0, (b"host", authority.encode("latin-1")))
    return {
        "type": kind,
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": version,
        "scheme": scheme,
        "path": unquote_to_bytes(path).decode("utf-8", "replace"),
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "root_path": "",
        "headers": fields,
        "client": client,
        "server": _server(authority, scheme),
        "state": {},
        "extensions": {},
        RECOGNIZE: recognize,
    }


def _server(authority: str, scheme: str) -> tuple[str, int] | None:
    host, colon, port = authority.rpartition(":")
    if not colon or not port.isdigit():
        host, port = authority, "443" if scheme in ("https", "wss") else "80"
    return (host.strip("[]"), int(port)) if host else None


def plain_response(text: str) -> tuple[list[tuple[str, str]], bytes]:
    """Return the header fields and body of a plain-text response."""
    body = text.encode() + b"\n"
    return [("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body)))], body


class _Bridge:
    """ASGI callables of one request and its response."""

    def __init__(self, app: ASGIApp, exchange: HttpExchange, limits: HttpLimits) -> None:
        self.app = app
        self.exchange = exchange
        self.max_body = limits.body_limit(exchange.path)
        self.received = 0
        self.body_ended = False
        self.started = False
        self.ended = False
        self.over = trio.Event()
        self.refusal: HeadError | None = None  # error that ended reading the request
        self.running = trio.CancelScope()

    async def run(self) -> None:
        exchange = self.exchange
        if self._declared() > self.max_body:
            await self._refuse(self._too_large())
            return
        scope = scope_of(
            "http",
            version=exchange.http_version,
            scheme=exchange.scheme,
            authority=exchange.authority,
            target=exchange.path,
            headers=exchange.headers,
            peer=exchange.peer,
            recognize=exchange.recognize,
        )
        scope["method"] = exchange.method
        try:
            with self.running:
                await self.app(scope, self.receive, self.send)
        except Exception as error:
            if _only_cancelled_or_broken(error):
                raise
            _log.exception("a page failed", method=exchange.method, path=scope["path"])
            await self._refuse(HeadError(500, "the page failed; see the server's log"))
            return
        if self.refusal is not None:
            await self._refuse(self.refusal)
        elif not self.ended:
            _log.error("a page ended without a complete response", method=exchange.method, path=scope["path"])
            await self._refuse(HeadError(500, "the page sent no complete response"))

    def _too_large(self) -> HeadError:
        return HeadError(413, f"the request's body is larger than {self.max_body} bytes")

    def _declared(self) -> int:
        length = next((value for name, value in self.exchange.headers if name == "content-length"), "0")
        return int(length) if length.isascii() and length.isdigit() and len(length) < 19 else 0

    async def receive(self) -> Message:
        if self.ended:
            return {"type": "http.disconnect"}
        if self.body_ended:
            await self.over.wait()  # a disconnection cancels the task instead
            return {"type": "http.disconnect"}
        data = b""
        try:
            data = await self.exchange.receive()
            self.received += len(data)
            if self.received > self.max_body:
                raise self._too_large()
        except HeadError as error:  # raised in the application, this would be logged as its failure
            self.refusal = error
            self.running.cancel()
            await trio.lowlevel.checkpoint()
        self.body_ended = not data
        return {"type": "http.request", "body": data, "more_body": bool(data)}

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            if self.started:
                raise RuntimeError("http.response.start was already sent")
            self.started = True
            await self._head(int(message["status"]), message.get("headers", ()))
        elif kind == "http.response.body":
            if not self.started:
                raise RuntimeError("http.response.start must come first")
            if not self.ended:
                await self._body(bytes(message.get("body", b"")), end=not message.get("more_body", False))
        else:
            raise RuntimeError(f"unknown message type {kind}")

    async def _head(self, status: int, fields: Iterable[tuple[bytes, bytes]]) -> None:
        head = [(bytes(name).decode("latin-1").lower(), bytes(value).decode("latin-1")) for name, value in fields]
        await self.exchange.respond(status, [field for field in head if field[0] not in _OF_THE_CONNECTION])

    async def _body(self, data: bytes, *, end: bool) -> None:
        if self.exchange.method == "HEAD":
            data = b""
        if data or end:
            await self.exchange.send_body(data, end=end)
        if end:
            self.ended = True
            self.over.set()

    async def _refuse(self, error: HeadError) -> None:
        if self.started:
            return  # the carrier aborts a started response
        self.started = self.ended = True
        fields, body = plain_response(f"{error.status} {HTTPStatus(error.status).phrase}: {error.text}")
        await self.exchange.respond(error.status, fields)
        await self.exchange.send_body(b"" if self.exchange.method == "HEAD" else body, end=True)


def _only_cancelled_or_broken(error: BaseException) -> bool:
    """Return True for an error of the carrier rather than the application, also inside exception groups."""
    if isinstance(error, BaseExceptionGroup):
        return all(_only_cancelled_or_broken(inner) for inner in error.exceptions)
    return isinstance(error, (trio.BrokenResourceError, trio.ClosedResourceError, trio.Cancelled))
