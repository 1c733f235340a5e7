"""Ports of loopback for tests: one on which somebody listens, and one on which nobody does."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

Handler = Callable[[trio.SocketStream], Awaitable[None]]


@asynccontextmanager
async def listening(handler: Handler, *, port: int = 0) -> AsyncIterator[int]:
    """The port of 127.0.0.1 whose connections go to `handler` until the context ends; a free one unless it is given."""
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, handler, listeners)
        found: int = listeners[0].socket.getsockname()[1]
        yield found
        nursery.cancel_scope.cancel()


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
