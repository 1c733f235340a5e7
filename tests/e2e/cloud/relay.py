"""A minimal load balancer: one address, whose connections go to a process that is running."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from tests.loopback import listening


class Relay:
    """Forward each connection to the `target` (host:port) at the time when the connection is opened."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.address = ""

    async def _pass_on(self, near: trio.SocketStream) -> None:
        host, _, port = self.target.rpartition(":")
        async with near:
            try:
                far = await trio.open_tcp_stream(host, int(port))
            except OSError:
                return
            async with far, trio.open_nursery() as nursery:
                nursery.start_soon(_copy, near, far, nursery.cancel_scope)
                nursery.start_soon(_copy, far, near, nursery.cancel_scope)


async def _copy(source: trio.SocketStream, target: trio.SocketStream, scope: trio.CancelScope) -> None:
    try:
        async for data in source:
            await target.send_all(data)
    except trio.BrokenResourceError:
        pass
    scope.cancel()


@asynccontextmanager
async def relay(target: str) -> AsyncIterator[Relay]:
    """Yield a relay that forwards connections until the block ends."""
    forwarder = Relay(target)
    async with listening(forwarder._pass_on) as port:
        forwarder.address = f"127.0.0.1:{port}"
        yield forwarder
