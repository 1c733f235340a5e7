"""A server core with a few methods, and an HTTP/1.1 client for it over memory streams."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import h11
import trio
import trio.testing
from google.protobuf.wrappers_pb2 import StringValue
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from rpc.call import ServerCore
from rpc.carrier import Peer
from rpc.http.asgi import ASGIApp, fallback
from rpc.http.limits import HttpLimits
from rpc.http.wire import Wire
from rpc.http1.connection import Http1Connection
from rpc.limits import Limits

PEER = Peer(("127.0.0.1", 40000))


@dataclass
class Methods:
    """Handlers of /test.Echo/... that record their requests."""

    events: list[str] = field(default_factory=list)
    metadata: list[dict[str, Any]] = field(default_factory=list)
    hanging: trio.Event = field(default_factory=trio.Event)
    cancelled: trio.Event = field(default_factory=trio.Event)

    async def unary(self, stream: Any) -> None:
        message = await stream.recv_message()
        self.metadata.append(dict(stream.metadata))
        self.events.append(message.value)
        await stream.send_message(StringValue(value=message.value))

    async def many(self, stream: Any) -> None:
        message = await stream.recv_message()
        for number in range(int(message.value)):
            await stream.send_message(StringValue(value=str(number)))

    async def collect(self, stream: Any) -> None:
        await stream.send_message(StringValue(value=",".join([message.value async for message in stream])))

    async def hang(self, stream: Any) -> None:
        await stream.recv_message()
        await stream.send_initial_metadata()
        self.hanging.set()
        try:
            await trio.sleep_forever()
        finally:
            self.cancelled.set()

    async def flood(self, stream: Any) -> None:
        await stream.recv_message()
        try:
            while True:
                await stream.send_message(StringValue(value="x" * 10_000))
        finally:
            self.cancelled.set()

    async def fail(self, stream: Any) -> None:
        await stream.recv_message()
        raise GRPCError(Status.NOT_FOUND, "no motor called größer\n")

    def router(self) -> dict[str, Handler]:
        kinds = {
            "unary": Cardinality.UNARY_UNARY,
            "many": Cardinality.UNARY_STREAM,
            "collect": Cardinality.STREAM_UNARY,
            "hang": Cardinality.UNARY_STREAM,
            "flood": Cardinality.UNARY_STREAM,
            "fail": Cardinality.UNARY_UNARY,
        }
        return {f"/test.Echo/{n}": Handler(getattr(self, n), k, StringValue, StringValue) for n, k in kinds.items()}


@dataclass
class Server:
    """A core whose connections run in a nursery of the test."""

    nursery: trio.Nursery
    core: ServerCore
    methods: Methods
    limits: HttpLimits
    app: ASGIApp | None
    connections: list[Http1Connection] = field(default_factory=list)

    def connect(self, pair: Any = None) -> Client:
        near, far = pair or trio.testing.memory_stream_pair()
        wire = Wire(far, stall=self.core.limits.write_stall)
        connection = Http1Connection(wire, self.core, peer=PEER, scheme="http", app=self.app, limits=self.limits)
        self.connections.append(connection)
        self.nursery.start_soon(connection.run)
        return Client(near)


@asynccontextmanager
async def serving(
    app: ASGIApp | None = None, *, limits: HttpLimits | None = None, core_limits: Limits | None = None, **core: Any
) -> AsyncIterator[Server]:
    methods = Methods()
    http = limits or HttpLimits()
    server_core = ServerCore(methods.router(), limits=core_limits or Limits(), **core)
    if app is not None:
        server_core.fallback = fallback(app, http)
    async with trio.open_nursery() as nursery:
        yield Server(nursery, server_core, methods, http, app)
        nursery.cancel_scope.cancel()


@dataclass
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def frames(self) -> list[tuple[int, bytes]]:
        return frames(self.body)

    @property
    def trailers(self) -> dict[str, str]:
        """Return the trailers of a gRPC-Web reply, from its last frame or from its head."""
        last = [data for flag, data in self.frames if flag & 0x80]
        if not last:
            return {k: v for k, v in self.headers.items() if k.startswith("grpc-")}
        return dict(line.split(": ", 1) for line in last[-1].decode("latin-1").split("\r\n") if line)

    @property
    def values(self) -> list[str]:
        return [StringValue.FromString(data).value for flag, data in self.frames if not flag & 0x80]


class Client:
    """An h11 client over a memory stream that rejects invalid responses."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.h11 = h11.Connection(h11.CLIENT)

    async def request(
        self, method: str, target: str, headers: list[tuple[str, str]] | None = None, body: bytes = b""
    ) -> Response:
        fields = [("host", "localhost:8080"), *(headers or [])]
        if body and not any(name in ("content-length", "transfer-encoding") for name, _ in fields):
            fields.append(("content-length", str(len(body))))
        data = self.h11.send(h11.Request(method=method, target=target, headers=fields)) or b""
        if body:
            data += self.h11.send(h11.Data(data=body)) or b""
        data += self.h11.send(h11.EndOfMessage()) or b""
        await self.stream.send_all(data)
        return await self.response()

    async def response(self) -> Response:
        head: h11.Response | None = None
        body = b""
        while True:
            event = self.h11.next_event()
            if event is h11.NEED_DATA:
                self.h11.receive_data(await self.stream.receive_some(65536))
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                break
            elif isinstance(event, h11.ConnectionClosed):
                raise EOFError
        assert head is not None
        if self.h11.our_state is h11.DONE and self.h11.their_state is h11.DONE:
            self.h11.start_next_cycle()
        return Response(head.status_code, {k.decode(): v.decode("latin-1") for k, v in head.headers}, body)

    async def call(
        self, method: str, *values: str, text: bool = False, headers: list[tuple[str, str]] | None = None
    ) -> Response:
        body = b"".join(frame(StringValue(value=value).SerializeToString()) for value in values)
        kind = "application/grpc-web-text" if text else "application/grpc-web+proto"
        fields = [("content-type", kind), ("x-grpc-web", "1"), *(headers or [])]
        body = base64.b64encode(body) if text else body
        return await self.request("POST", f"/test.Echo/{method}", fields, body)

    async def raw(self, data: bytes) -> bytes:
        """Send `data` unchanged and return everything received until the server closes the connection."""
        await self.stream.send_all(data)
        return await self.rest()

    async def rest(self) -> bytes:
        received = b""
        while data := await self.stream.receive_some(65536):
            received += data
        return received


def frame(data: bytes, flag: int = 0) -> bytes:
    return bytes((flag,)) + len(data).to_bytes(4, "big") + data


def frames(body: bytes) -> list[tuple[int, bytes]]:
    parsed = []
    while body:
        size = int.from_bytes(body[1:5], "big")
        assert len(body) >= 5 + size, "cut off"
        parsed.append((body[0], body[5 : 5 + size]))
        body = body[5 + size :]
    return parsed
