"""A small service without generated code, with a server and a client over memory streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import trio
from grpclib.client import StreamStreamMethod, StreamUnaryMethod, UnaryStreamMethod, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from rpc.call import ServerCore
from rpc.carrier import Identity, Peer
from rpc.client.channel import Channel
from rpc.datachannel.client import CallChannel
from rpc.datachannel.server import ServerChannel, serve_channel
from rpc.http.limits import HttpLimits
from rpc.http.wire import Wire
from rpc.http1.connection import Http1Connection
from rpc.http2.server import ServerConnection, serve_http2
from rpc.limits import Limits
from rpc.peers.memory import memory_channels
from schema.errors import ErrorKind, MachineError
from tests.unit.rpc.web_calls import WebCalls

PATH = "/test.v1.EchoService/"
PEER = Peer(("192.0.2.7", 4000))


class EchoService:
    """Test service; Hang sets `started` when it runs and `cancelled` when it is cancelled."""

    def __init__(self) -> None:
        self.started = trio.Event()
        self.cancelled = trio.Event()
        self.seen: list[Any] = []
        self.gate = trio.Event()

    async def echo(self, stream: Any) -> None:
        request = await stream.recv_message()
        self.seen.append(stream)
        await stream.send_message(Reply(valid_host=request.host))

    async def many(self, stream: Any) -> None:
        request = await stream.recv_message()
        count, size = map(int, request.host.split(","))
        for _ in range(count):
            await stream.send_message(Reply(valid_host="x" * size))

    async def collect(self, stream: Any) -> None:
        total = 0
        async for request in stream:
            total += len(request.host)
        await stream.send_message(Reply(valid_host=str(total)))

    async def bidi(self, stream: Any) -> None:
        async for request in stream:
            await stream.send_message(Reply(valid_host=request.host))

    async def hang(self, stream: Any) -> None:
        self.started.set()
        try:
            await trio.sleep_forever()
        finally:
            self.cancelled.set()

    async def unread(self, stream: Any) -> None:
        """Wait for the gate before reading."""
        self.started.set()
        await self.gate.wait()
        await self.collect(stream)

    async def fail(self, stream: Any) -> None:
        request = await stream.recv_message()
        what = request.host
        if what == "grpc":
            raise GRPCError(Status.NOT_FOUND, "nö 100%\n", [Reply(valid_host="detail")])
        if what == "machine":
            raise MachineError("no such motor", kind=ErrorKind.PRECONDITION, remedy="configure one")
        if what == "group":
            raise ExceptionGroup("nursery", [ExceptionGroup("inner", [GRPCError(Status.ABORTED, "leaf")])])
        if what == "bug":
            raise RuntimeError("secret detail")
        if what == "trailing":
            await stream.send_initial_metadata(metadata={"first": "1", "data-bin": b"\0\xff"})
            await stream.send_trailing_metadata(status=Status.DATA_LOSS, status_message="lost", metadata={"last": "2"})
        # any other value: return without a reply

    def __mapping__(self) -> dict[str, Handler]:
        unary, stream = Cardinality.UNARY_UNARY, Cardinality.UNARY_STREAM
        methods = {
            "Echo": (self.echo, unary),
            "Many": (self.many, stream),
            "Collect": (self.collect, Cardinality.STREAM_UNARY),
            "Bidi": (self.bidi, Cardinality.STREAM_STREAM),
            "Hang": (self.hang, unary),
            "Unread": (self.unread, Cardinality.STREAM_UNARY),
            "Fail": (self.fail, unary),
        }
        return {PATH + name: Handler(func, kind, Request, Reply) for name, (func, kind) in methods.items()}


class Stub:
    """Client methods, as protoc-gen-grpclib would generate them."""

    def __init__(self, channel: Any) -> None:
        self.Echo = UnaryUnaryMethod(channel, PATH + "Echo", Request, Reply)
        self.Many = UnaryStreamMethod(channel, PATH + "Many", Request, Reply)
        self.Collect = StreamUnaryMethod(channel, PATH + "Collect", Request, Reply)
        self.Bidi = StreamStreamMethod(channel, PATH + "Bidi", Request, Reply)
        self.Hang = UnaryUnaryMethod(channel, PATH + "Hang", Request, Reply)
        self.Unread = StreamUnaryMethod(channel, PATH + "Unread", Request, Reply)
        self.Fail = UnaryUnaryMethod(channel, PATH + "Fail", Request, Reply)
        self.Missing = UnaryUnaryMethod(channel, PATH + "Missing", Request, Reply)


class Rig:
    """A server and a channel in one nursery; each connection is a pair of memory streams."""

    def __init__(
        self, nursery: trio.Nursery, server_limits: Limits, client_limits: Limits, core: dict[str, Any]
    ) -> None:
        self.service = EchoService()
        self.core = ServerCore(self.service.__mapping__(), limits=server_limits, **core)
        self.nursery = nursery
        self.channel = Channel("machine:1", limits=client_limits, connect=self.connect)
        self.stub = Stub(self.channel)
        self.streams: list[Any] = []

    async def connect(self) -> trio.abc.Stream:
        client, server = memory_stream_pair()
        self.streams.append((client, server))
        self.nursery.start_soon(serve_http2, server, self.core)
        return client

    @property
    def connection(self) -> ServerConnection:
        (connection,) = self.core._connections
        assert isinstance(connection, ServerConnection)
        return connection

    def held(self) -> int:
        """Return the number of calls and unread bytes that the server holds."""
        return len(self.connection.streams) + self.connection.budget.used


class ChannelRig:
    """A server and a client on one data channel in memory, which carries `rate` bytes per second each way."""

    channel: Any
    stub: Stub
    ends: tuple[Any, Any]

    def __init__(self, nursery: trio.Nursery, limits: Limits, core: dict[str, Any]) -> None:
        self.nursery = nursery
        self.service = EchoService()
        self.core = ServerCore(self.service.__mapping__(), limits=limits, **core)
        self.serving = trio.CancelScope()

    @property
    def connection(self) -> ServerChannel:
        (connection,) = self.core._connections
        assert isinstance(connection, ServerChannel)
        return connection

    def held(self) -> int:
        """Return the number of calls and unread bytes that the server holds."""
        return self.connection.running + self.connection.budget.used


@asynccontextmanager
async def channel_rig(
    *,
    limits: Limits | None = None,
    client_limits: Limits | None = None,
    rate: float = inf,
    identity: Identity | None = None,
    peer: Peer = PEER,
    **core: Any,
) -> AsyncIterator[ChannelRig]:
    async with memory_channels(rate=rate) as (near, far), trio.open_nursery() as nursery:
        opened = ChannelRig(nursery, limits or Limits(), core)

        async def serve() -> None:
            with opened.serving:
                await serve_channel(far, opened.core, peer=peer, identity=identity)

        nursery.start_soon(serve)
        async with CallChannel(near, limits=client_limits) as opened.channel:
            opened.ends = near, far
            opened.stub = Stub(opened.channel)
            await wait_all_tasks_blocked()
            yield opened
        nursery.cancel_scope.cancel()


class WebRig:
    """A server, and a client that opens a separate connection for each gRPC-Web call."""

    def __init__(self, nursery: trio.Nursery, limits: Limits, client_limits: Limits, core: dict[str, Any]) -> None:
        self.service = EchoService()
        self.core = ServerCore(self.service.__mapping__(), limits=limits, **core)
        self.nursery = nursery
        self.channel = WebCalls(nursery, self.connect, client_limits)
        self.stub = Stub(self.channel)

    def connect(self) -> trio.abc.Stream:
        client, server = memory_stream_pair()
        wire = Wire(server, stall=self.core.limits.write_stall)
        connection = Http1Connection(wire, self.core, peer=PEER, scheme="http", app=None, limits=HttpLimits())
        self.nursery.start_soon(connection.run)
        return client

    def held(self) -> int:
        """Return 0: each call uses a separate connection, which closes with the call."""
        return 0


@asynccontextmanager
async def web_rig(
    *, limits: Limits | None = None, client_limits: Limits | None = None, **core: Any
) -> AsyncIterator[WebRig]:
    async with trio.open_nursery() as nursery:
        yield WebRig(nursery, limits or Limits(), client_limits or Limits(), core)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def rig(*, limits: Limits | None = None, client_limits: Limits | None = None, **core: Any) -> AsyncIterator[Rig]:
    async with trio.open_nursery() as nursery:
        opened = Rig(nursery, limits or Limits(), client_limits or Limits(), core)
        async with opened.channel:
            yield opened
        nursery.cancel_scope.cancel()
