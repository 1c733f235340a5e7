"""The WebSocket on which a machine serves calls: the machine is the HTTP/2 server, the cloud the client.

`/machine/v1/serve?part=ID&request=ID` needs a token in `authorization`, and the id of a request that the machine got
over its push channel (see cloud.web.api.push). Binary messages carry the bytes of HTTP/2 in both directions.
"""

from __future__ import annotations

from typing import Final

import trio
from starlette.responses import PlainTextResponse
from starlette.websockets import WebSocket

from cloud.domain.permissions.authentication import author_of
from cloud.domain.permissions.calling import check_answering
from cloud.services.common.base import Cloud
from cloud.services.reverse.opening import until_caller_refused, until_machine_refused
from cloud.values.author import Author
from cloud.web.common.site import status_of
from cloud.work.reverse import Reverse
from rpc import Limits, Statistics
from rpc.access import identity_of
from rpc.http import MessageStream
from rpc.http2 import ClientConnection, encode_header, encode_headers
from rpc.pages import DISCONNECTED
from schema import MachineError

IDLE: Final = 60.0  # seconds without a call after which the connection is closed
_NORMAL: Final = (1000, 1001)  # RFC 6455 7.4.1
_PSEUDO: Final = encode_headers([(":method", "POST"), (":scheme", "http")])
_FIELDS: Final = encode_headers([("te", "trailers"), ("content-type", "application/grpc")])


class Serve:
    """Endpoint of connections for calls; one task for each."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._statistics = Statistics()

    async def serve(self, socket: WebSocket) -> None:
        """Use a machine's connection for the calls of the caller that waits for it, until either has ended."""
        part, author = socket.query_params.get("part", ""), author_of(identity_of(socket.scope))
        try:
            check_answering(author)
        except MachineError as error:
            await socket.send_denial_response(PlainTextResponse(str(error), status_of(error)))
            return
        reverse = self._cloud.reverses.take(part, socket.query_params.get("request", ""))
        if reverse is None:
            text = (
                "no caller waits for this connection here: it may have given up, or wait at another replica of the "
                "cloud, which then needs --replica-address"
            )
            await socket.send_denial_response(PlainTextResponse(text, 404))
            return
        await socket.accept()
        head = _PSEUDO + encode_header(":authority", part)

        def block(method: str) -> bytes:
            return head + encode_header(":path", method) + _FIELDS

        message = self._cloud.limits.message
        limits = Limits(max_message=message, max_buffered=message * 3 // 2, idle_timeout=IDLE)
        connection = ClientConnection(byte_stream(socket), limits, self._statistics, block)
        async with trio.open_nursery() as nursery:
            await nursery.start(connection.run)
            nursery.start_soon(self._end_with_caller, reverse, connection)
            nursery.start_soon(self._end_with_clients, reverse, connection)
            nursery.start_soon(self._end_with_machine, author, part, connection)
            with self._cloud.reverses.open(reverse, connection):
                await connection.ended.wait()
            nursery.cancel_scope.cancel()

    async def _end_with_caller(self, reverse: Reverse, connection: ClientConnection) -> None:
        reverse.refusal = await until_caller_refused(self._cloud, reverse.author, reverse.key.part)
        connection.close()

    async def _end_with_clients(self, reverse: Reverse, connection: ClientConnection) -> None:
        """Close soon after the clients have left in order, so that the machine does not take them for lost."""
        await reverse.until_all_left()
        connection.close()

    async def _end_with_machine(self, author: Author, part: str, connection: ClientConnection) -> None:
        await until_machine_refused(self._cloud, author, part)
        connection.close()


def byte_stream(socket: WebSocket) -> MessageStream:
    """Return a stream of the bytes in the binary messages of an accepted WebSocket."""

    async def receive() -> bytes:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            if message.get("code") in _NORMAL:
                return b""
            raise trio.BrokenResourceError("the WebSocket was lost")
        data = message.get("bytes")
        if not data:
            raise trio.BrokenResourceError("the machine sent a WebSocket message that is text or empty")
        return bytes(data)

    async def send(data: bytes) -> None:
        try:
            await socket.send_bytes(data)
        except DISCONNECTED:
            raise trio.BrokenResourceError("the WebSocket is closed") from None

    async def close() -> None:
        try:
            await socket.close()
        except DISCONNECTED:
            pass  # closed by the machine

    return MessageStream(receive, send, close)
