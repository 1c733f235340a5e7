"""Opening of client WebSockets with a single exception type for all failures, and their use as byte streams."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import trio

from rpc.http.message_stream import MessageStream

if TYPE_CHECKING:
    from trio_websocket import WebSocketConnection

Stream: TypeAlias = "trio.SocketStream | trio.SSLStream[trio.SocketStream]"
Read: TypeAlias = Callable[[], Awaitable[None]]
_ABNORMAL: Final = 1006  # RFC 6455 7.1.5: closed without a closing handshake
_SHOWN: Final = 200  # characters of a response body in an error message


class NotOpened(Exception):
    """Failure to open a WebSocket. `status` and `body` are those of an HTTP response, otherwise 0 and empty."""

    def __init__(self, reason: str, status: int = 0, body: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.body = body


class _Watched:
    """Nursery wrapper that detects a connection that ends before it is open, which the library does not report."""

    def __init__(self, nursery: trio.Nursery, watch: Callable[[Read], Awaitable[None]]) -> None:
        self._nursery, self._watch = nursery, watch

    def start_soon(self, read: Read) -> None:
        self._nursery.start_soon(self._watch, read)


async def open_websocket(
    nursery: trio.Nursery,
    stream: Stream,
    authority: str,
    target: str,
    *,
    headers: Sequence[tuple[str, str]] = (),
    max_message: int,
) -> WebSocketConnection:
    """Open a WebSocket on a connected stream, after any TLS handshake; NotOpened if the server refuses.

    `target` is path and query; `max_message` is in bytes. The reader task runs in `nursery`. The caller limits the time
    and closes the stream, which the library leaves open if the server disconnects without a response.
    """
    import h11
    from trio_websocket import ConnectionRejected, wrap_client_stream
    from wsproto.utilities import ProtocolError

    failure = NotOpened("the server closed the connection before it responded")

    async def watch(read: Read) -> None:
        nonlocal failure
        try:
            await read()
        except ConnectionRejected as error:
            body = (error.body or b"").decode(errors="replace").strip()
            excerpt = f": {body[:_SHOWN]}" if body else ""
            failure = NotOpened(f"refused with HTTP status {error.status_code}{excerpt}", error.status_code, body)
        except (h11.ProtocolError, ProtocolError):  # raised by wsproto for an unreadable response
            failure = NotOpened("the server's response is neither HTTP/1.1 nor WebSocket")
        finally:
            opening.cancel()

    with trio.CancelScope() as opening:
        return await wrap_client_stream(
            cast(trio.Nursery, _Watched(nursery, watch)),
            stream,
            authority,
            target,
            extra_headers=[(name.encode(), value.encode()) for name, value in headers],
            max_message_size=max_message,
        )
    raise failure


def byte_stream(socket: WebSocketConnection) -> MessageStream:
    """Return a stream of the bytes in the binary messages of an open WebSocket, which its owner closes."""
    from trio_websocket import ConnectionClosed

    async def receive() -> bytes:
        try:
            message = await socket.get_message()
        except ConnectionClosed as error:
            if error.reason is None or error.reason.code == _ABNORMAL:
                raise trio.BrokenResourceError("the WebSocket was lost") from None
            return b""
        if not isinstance(message, bytes) or not message:
            raise trio.BrokenResourceError("the peer sent a WebSocket message that is text or empty")
        return message

    async def send(data: bytes) -> None:
        try:
            await socket.send_message(data)
        except ConnectionClosed:
            raise trio.BrokenResourceError("the WebSocket is closed") from None

    return MessageStream(receive, send, trio.lowlevel.checkpoint)
