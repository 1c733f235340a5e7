"""A receiver of webhooks on a loopback port, with answers chosen by the test."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import h11
import trio

from tests.loopback import listening

Respond = Callable[[trio.abc.Stream, "Received"], Awaitable[None]]


@dataclass
class Received:
    """A received request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """The requests received so far, and the receiver's address."""

    port: int
    requests: list[Received] = field(default_factory=list)
    changed: trio.Event = field(default_factory=trio.Event)
    """Set at the next request, and then replaced with a new event."""

    def url(self, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}/hook?a=1"


def answering(status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> Respond:
    """Return a responder that always sends this answer."""

    async def respond(stream: trio.abc.Stream, received: Received) -> None:
        lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in (headers or {}).items())]
        await stream.send_all("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body)

    return respond


@asynccontextmanager
async def receiver(
    respond: Respond | None = None, tls: ssl.SSLContext | None = None, *, port: int = 0
) -> AsyncIterator[Receiver]:
    """Yield a receiver that runs until the block ends."""
    hooks = Receiver(port)

    async def serve(plain: trio.SocketStream) -> None:
        stream = plain if tls is None else trio.SSLStream(plain, tls, server_side=True, https_compatible=True)
        try:
            received = await _request(stream)
            hooks.requests.append(received)
            hooks.changed.set()
            hooks.changed = trio.Event()
            await (respond or answering(200))(stream, received)
        except (trio.BrokenResourceError, ssl.SSLError, h11.RemoteProtocolError):
            pass  # the client disconnected
        finally:
            await trio.aclose_forcefully(plain)

    async with listening(serve, port=port) as hooks.port:
        yield hooks


async def _request(stream: trio.abc.Stream) -> Received:
    connection = h11.Connection(h11.SERVER)
    received: Received | None = None
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive_some())
        elif isinstance(event, h11.Request):
            names = {name.decode(): value.decode("latin-1") for name, value in event.headers.raw_items()}
            received = Received(event.method.decode(), event.target.decode(), names, b"")
        elif isinstance(event, h11.Data):
            assert received is not None
            received.body += event.data
        elif isinstance(event, h11.EndOfMessage):
            assert received is not None
            return received
        else:
            raise h11.RemoteProtocolError("the client went away")
