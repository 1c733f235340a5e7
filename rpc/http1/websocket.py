"""Adapter from ASGI applications to trio-websocket, for WebSockets over HTTP/1.1.

The application receives `websocket.disconnect` at the end; an application that does not receive is cancelled shortly
after the peer disconnects. Applications should receive even if they expect no messages, because unread messages also
delay the answers to pings.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, WebSocketRequest, wrap_server_stream

from rpc.carrier import Peer, Recognize
from rpc.http.asgi import ASGIApp, Message, plain_response, scope_of
from rpc.http.head import Head, HeadError
from rpc.http.limits import HttpLimits
from rpc.http.wire import Wire

NORMAL: Final = 1000  # RFC 6455 7.4.1
GOING_AWAY: Final = 1001
ABNORMAL: Final = 1006
FAILED: Final = 1011

_log = structlog.stdlib.get_logger("rpc.websocket")


class _Gone(OSError):
    """The application has sent a message to a peer that has disconnected."""


def _is_disconnect(error: BaseException) -> bool:
    """Return whether an application ended because of _Gone, also in nurseries: frameworks raise their own error for
    it."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_disconnect, error.exceptions))
    return isinstance(error, ConnectionClosed | _Gone) or isinstance(error.__context__, _Gone)


def is_upgrade(head: Head) -> bool:
    """Return True if a request asks for a WebSocket; HeadError (400, 426) if the request for it is invalid."""
    if "websocket" not in head.tokens("upgrade") or "upgrade" not in head.tokens("connection"):
        return False
    if head.method != "GET" or head.version != "1.1":
        raise HeadError(400, "a WebSocket must be opened with GET in HTTP/1.1")
    if head.get("sec-websocket-version") != "13":
        raise HeadError(
            426, "this server supports version 13 of the WebSocket protocol", ("sec-websocket-version", "13")
        )
    try:
        nonce = base64.b64decode(head.get("sec-websocket-key"), validate=True)
    except (binascii.Error, ValueError):
        nonce = b""
    if len(nonce) != 16:
        raise HeadError(400, "Sec-WebSocket-Key must be 16 bytes in base64")
    if head.get("content-length") not in ("", "0") or head.get("transfer-encoding"):
        raise HeadError(400, "a request for a WebSocket must not have a body")
    return True


async def serve_websocket(
    app: ASGIApp,
    wire: Wire,
    head: Head,
    *,
    scheme: str,
    peer: Peer,
    limits: HttpLimits,
    farewell: float,
    closing: trio.Event,
    recognize: Recognize,
) -> None:
    """Serve one WebSocket to its end. The request head must be the next data of `wire`, which the caller closes.

    When `closing` is set, the WebSocket is closed with code 1001, which must complete within `farewell` seconds. An
    application that does not end within `farewell` seconds after the peer has disconnected is cancelled.
    """
    scope = scope_of(
        "websocket",
        version="1.1",
        scheme="wss" if scheme == "https" else "ws",
        authority=head.host,
        target=head.path,
        headers=head.fields,
        peer=peer,
        recognize=recognize,
    )
    scope["extensions"] = {"websocket.http.response": {}}
    async with trio.open_nursery() as nursery:
        with trio.move_on_after(limits.head_timeout) as handshake:
            request = await wrap_server_stream(nursery, wire, max_message_size=limits.max_websocket_message)
        if not handshake.cancelled_caught:
            scope["subprotocols"] = list(request.proposed_subprotocols)
            await _Socket(nursery, request, wire, limits, farewell, closing).run(app, scope)
        nursery.cancel_scope.cancel()


class _Socket:
    """WebSocket with the ASGI receive and send callables."""

    def __init__(
        self,
        nursery: trio.Nursery,
        request: WebSocketRequest,
        wire: Wire,
        limits: HttpLimits,
        farewell: float,
        closing: trio.Event,
    ) -> None:
        self.nursery = nursery
        self.request = request
        self.wire = wire
        self.limits = limits
        self.farewell = farewell
        self.closing = closing
        self.connection: WebSocketConnection | None = None
        self.announced = False  # the application has received websocket.connect
        self.answered = False  # accepted or rejected
        self.denial: Message | None = None
        self.denial_body = bytearray()
        self.handlers: Mapping[str, Callable[[Message], Any]] = {
            "websocket.accept": self._accept,
            "websocket.send": self._send,
            "websocket.close": self._close,
            "websocket.http.response.start": self._deny,
            "websocket.http.response.body": self._deny_body,
        }

    async def run(self, app: ASGIApp, scope: dict[str, Any]) -> None:
        code = NORMAL
        with trio.CancelScope() as application:
            self.nursery.start_soon(self._end_with_peer, application)
            self.nursery.start_soon(self._end_with_server)
            try:
                await app(scope, self.receive, self.send)
            except Exception as error:
                if not _is_disconnect(error):
                    _log.exception("a WebSocket's handler failed", path=scope["path"])
                    code = FAILED
        with trio.move_on_after(self.farewell):
            if self.connection is not None:
                await self.connection.aclose(code)
            elif not self.answered:
                await self._reject(500 if code == FAILED else 403)

    async def receive(self) -> Message:
        if not self.announced:
            self.announced = True
            return {"type": "websocket.connect"}
        if self.connection is None:
            await self.wire.gone.wait()
            return {"type": "websocket.disconnect", "code": ABNORMAL, "reason": ""}
        try:
            message = await self.connection.get_message()
        except ConnectionClosed as error:
            reason = error.reason
            code = ABNORMAL if reason is None else int(reason.code)
            return {"type": "websocket.disconnect", "code": code, "reason": (reason and reason.reason) or ""}
        if isinstance(message, str):
            return {"type": "websocket.receive", "text": message}
        return {"type": "websocket.receive", "bytes": message}

    async def send(self, message: Message) -> None:
        handler = self.handlers.get(message["type"])
        if handler is None:
            raise RuntimeError(f"unknown message type {message['type']}")
        try:
            await handler(message)
        except ConnectionClosed:
            raise _Gone("the WebSocket is closed") from None

    async def _accept(self, message: Message) -> None:
        if self.answered:
            raise RuntimeError("the WebSocket was already accepted or rejected")
        self.answered = True
        headers = [(bytes(name), bytes(value)) for name, value in message.get("headers") or ()]
        self.connection = await self.request.accept(subprotocol=message.get("subprotocol"), extra_headers=headers)
        self.nursery.start_soon(self._ping, self.connection)

    async def _send(self, message: Message) -> None:
        if self.connection is None:
            raise RuntimeError("the WebSocket was not accepted")
        text = message.get("text")
        await self.connection.send_message(bytes(message["bytes"]) if text is None else text)

    async def _close(self, message: Message) -> None:
        if self.connection is None:
            await self._reject(403)
            return
        with trio.move_on_after(self.farewell):
            await self.connection.aclose(message.get("code") or NORMAL, message.get("reason") or None)

    async def _deny(self, message: Message) -> None:
        self.denial = message

    async def _deny_body(self, message: Message) -> None:
        if self.denial is None:
            raise RuntimeError("websocket.http.response.start must come first")
        self.denial_body += message.get("body", b"")
        if not message.get("more_body", False):
            skipped = (b"content-length", b"connection")
            headers = [
                (bytes(name), bytes(value))
                for name, value in self.denial["headers"]
                if bytes(name).lower() not in skipped
            ]
            await self._reject(int(self.denial["status"]), headers, bytes(self.denial_body))

    async def _reject(self, status: int, headers: list[tuple[bytes, bytes]] | None = None, body: bytes = b"") -> None:
        if self.answered:
            return
        self.answered = True
        if headers is None:
            fields, body = plain_response(HTTPStatus(status).phrase)
            headers = [(name.encode(), value.encode()) for name, value in fields if name != "content-length"]
        try:
            await self.request.reject(status, extra_headers=[*headers, (b"connection", b"close")], body=body)
        except ConnectionClosed:
            pass

    async def _ping(self, connection: WebSocketConnection) -> None:
        try:
            while True:
                with trio.move_on_after(self.limits.ping_interval):
                    await self.wire.gone.wait()
                    return
                with trio.move_on_after(self.limits.ping_interval) as patience:
                    await connection.ping()
                if patience.cancelled_caught:
                    await trio.aclose_forcefully(self.wire)
                    return
        except ConnectionClosed:
            pass

    async def _end_with_peer(self, application: trio.CancelScope) -> None:
        await self.wire.gone.wait()
        application.deadline = trio.current_time() + self.farewell

    async def _end_with_server(self) -> None:
        await self.closing.wait()
        if self.connection is None:
            await self._reject(503)
            return
        with trio.move_on_after(self.farewell):
            await self.connection.aclose(GOING_AWAY, "the server is shutting down")
