"""A cloud that was taken over: it serves other metadata of releases than the organization has signed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

_METADATA = re.compile(rb"GET \S*/releases/metadata/(\S+) HTTP/1\.1\r\n")


class TakenOver:
    """A relay to the cloud, at `port`. Each request for a file in `files` is answered with its content."""

    def __init__(self, cloud: str) -> None:
        self.files: dict[str, bytes] = {}
        self.port = 0
        self._port = int(cloud.rpartition(":")[2])

    async def carry(self, near: trio.SocketStream) -> None:
        """Serve a connection."""
        async with near:
            first = bytes(await near.receive_some())
            request = _METADATA.match(first)
            if request is not None and (body := self.files.get(request[1].decode())) is not None:
                head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
                await near.send_all(head.encode() + body)
                return
            async with await trio.open_tcp_stream("localhost", self._port) as far, trio.open_nursery() as nursery:
                await far.send_all(first)
                nursery.start_soon(_pump, near, far)
                await _pump(far, near)
                nursery.cancel_scope.cancel()


async def _pump(source: trio.SocketStream, target: trio.SocketStream) -> None:
    try:
        async for part in source:
            await target.send_all(part)
        await target.send_eof()
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass


@asynccontextmanager
async def taken_over(cloud: str) -> AsyncIterator[TakenOver]:
    """Serve the relay to the cloud at an address `host:port` while the context is open."""
    relay = TakenOver(cloud)
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        relay.port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, relay.carry, [listener])
        yield relay
        nursery.cancel_scope.cancel()
