"""Loopback ports for tests, with and without a listener."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

HOSTS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
Handler = Callable[[trio.SocketStream], Awaitable[None]]


@asynccontextmanager
async def listening(handler: Handler, *, port: int = 0) -> AsyncIterator[int]:
    """Yield a port of 127.0.0.1 whose connections go to `handler` until the block ends; a free port by default."""
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, handler, listeners)
        number: int = listeners[0].socket.getsockname()[1]
        yield number
        nursery.cancel_scope.cancel()


_PORTS = random.SystemRandom().sample(range(15_000, 32_000), 2_000)
"""Ports below the range from which the kernel takes ports of outgoing connections, in random order for each process.

A port of that range could be taken by another test before a program listens on it.
"""


def free_port() -> int:
    """Return a localhost port without a listener that this function has not returned before."""
    while _PORTS:
        port = _PORTS.pop()
        if all(_is_free(family, host, port) for family, host in HOSTS):
            return port
    raise RuntimeError("no free port is left")


def _is_free(family: socket.AddressFamily, host: str, port: int) -> bool:
    with socket.socket(family) as probe:
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE  # without IPv6 there is no ::1
        return True
