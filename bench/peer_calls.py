"""Calls over a data channel, over HTTP/2 on loopback and over a data channel in memory, for `bench.peers`."""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import trio
from grpclib.client import UnaryUnaryMethod
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply

from bench.rpc_servers import SERVICE, Echo
from rpc.call import ServerCore
from rpc.carrier import Peer
from rpc.client.channel import Channel as HttpChannel
from rpc.datachannel.client import CallChannel
from rpc.datachannel.server import serve_channel
from rpc.http2.server import serve_http2
from rpc.peers.memory import memory_channels
from rpc.peers.port import PeerChannel

CALLS: Final = 2000
AT_ONCE: Final = 16
WARM: Final = 100
LARGE: Final = 8 << 20  # bytes

Call = Callable[[Any], Awaitable[Any]]


@asynccontextmanager
async def over_channel(near: PeerChannel, far: PeerChannel) -> AsyncIterator[Call]:
    """Yield a unary call over a data channel, which is closed at the end."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve_channel, far, ServerCore(Echo().__mapping__()), peer=Peer()))
        async with CallChannel(near) as channel:
            yield _method(channel)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def over_http2() -> AsyncIterator[Call]:
    """Yield a unary call over HTTP/2 on loopback."""
    async with trio.open_nursery() as nursery:
        serve = partial(serve_http2, core=ServerCore(Echo().__mapping__()))
        (listener,) = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        port = listener.socket.getsockname()[1]
        async with HttpChannel(f"127.0.0.1:{port}") as channel:
            yield _method(channel)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def over_memory() -> AsyncIterator[Call]:
    """Yield a unary call over a data channel in memory: the cost without an engine."""
    async with memory_channels() as ends, over_channel(*ends) as call:
        yield call


async def measure(call: Call, longest: Callable[[], float]) -> str:
    """Return round trip, calls per second and the cost of a large message; `longest` returns the longest step in ms."""
    request = Request(host="hello")
    for _ in range(WARM):
        await call(request)
    times = []
    cpu = time.process_time()
    for _ in range(CALLS):
        begin = time.perf_counter()
        await call(request)
        times.append(time.perf_counter() - begin)
    cpu = (time.process_time() - cpu) / CALLS
    begin = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(AT_ONCE):
            nursery.start_soon(_repeat, call, request)
    rate = CALLS / (time.perf_counter() - begin)
    longest()
    begin = time.perf_counter()
    await call(Request(host="x" * LARGE))
    wall = time.perf_counter() - begin
    return (
        f"round trip {1e3 * statistics.median(times):.2f} ms, {1e6 * cpu:.0f} CPU-us; {rate:.0f}/s with {AT_ONCE} "
        f"at once; 2 x {LARGE >> 20} MiB in {wall:.2f} s, longest step {longest():.1f} ms"
    )


async def _repeat(call: Call, request: Any) -> None:
    for _ in range(CALLS // AT_ONCE):
        await call(request)


def _method(channel: Any) -> Call:
    return UnaryUnaryMethod(channel, f"/{SERVICE}/Echo", Request, Reply)
