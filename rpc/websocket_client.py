"""The opening of a WebSocket by its client: whatever the other side answers ends in one kind of error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import h11
import trio

if TYPE_CHECKING:
    from trio_websocket import WebSocketConnection

Stream: TypeAlias = "trio.SocketStream | trio.SSLStream[trio.SocketStream]"
Read: TypeAlias = Callable[[], Awaitable[None]]
_SHOWN: Final = 200  # characters of a body


class NotOpened(Exception):
    """There is no WebSocket: the text says why. `status` and `body` are of an answer in HTTP, else 0 and empty."""

    def __init__(self, reason: str, status: int = 0, body: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.body = body


class _Watched:
    """The nursery as the library uses it, which says nothing of a connection that ends before it is open."""

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
    """A WebSocket on a stream whose TLS is established, when the other side has agreed; NotOpened if it does not.

    `target` is path and query, `max_message` in bytes. Reading goes on in `nursery`. The caller limits the time, and
    closes the stream, which the library leaves open if the other side hangs up without a word.
    """
    from trio_websocket import ConnectionRejected, wrap_client_stream
    from wsproto.utilities import ProtocolError

    failure = NotOpened("it hung up before it answered")

    async def watch(read: Read) -> None:
        nonlocal failure
        try:
            await read()
        except ConnectionRejected as error:
            body = (error.body or b"").decode(errors="replace").strip()
            shown = f": {body[:_SHOWN]}" if body else ""
            failure = NotOpened(f"refused with HTTP status {error.status_code}{shown}", error.status_code, body)
        except (h11.ProtocolError, ProtocolError):  # what wsproto makes of an answer that it cannot read
            failure = NotOpened("what answers there speaks neither HTTP/1.1 nor WebSocket")
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
