"""A client of a data channel in memory that sends envelopes as it likes, and the responses to each call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import Any

import trio
from grpclib.const import Status
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from rpc.api.messages import data_channel
from rpc.call import ServerCore
from rpc.datachannel.server import serve_channel
from rpc.limits import Limits
from rpc.peers.channel import MessageChannel
from rpc.peers.memory import memory_channels
from tests.unit.rpc.echo import PATH, PEER, EchoService

E = data_channel()
HELLO = ServerReflectionRequest(host="hello").SerializeToString()


def stream(sid: int) -> Any:
    return E.Stream(id=sid)


def headers(sid: int, method: str = "Echo", metadata: dict[str, list[str]] | None = None, **fields: Any) -> bytes:
    """Encode request headers; a method without `/` is one of the echo service."""
    path = method if method[:1] in ("/", "") else PATH + method
    head = E.RequestHeaders(method=path, **fields)
    for key, values in (metadata or {}).items():
        head.metadata.md[key].values.extend(values)
    return bytes(E.Request(stream=stream(sid), headers=head).SerializeToString())


def packet(sid: int, data: bytes = HELLO, *, eom: bool = True, eos: bool = True) -> bytes:
    message = E.RequestMessage(has_message=True, packet_message=E.PacketMessage(data=data, eom=eom), eos=eos)
    return bytes(E.Request(stream=stream(sid), message=message).SerializeToString())


def half_close(sid: int) -> bytes:
    return bytes(E.Request(stream=stream(sid), message=E.RequestMessage(eos=True)).SerializeToString())


def reset(sid: int) -> bytes:
    return bytes(E.Request(stream=stream(sid), rst_stream=True).SerializeToString())


class Raw:
    """The server and the client's end of its channel. `responses` are by call."""

    def __init__(self, nursery: trio.Nursery, channel: MessageChannel, core: ServerCore, service: EchoService) -> None:
        self.nursery = nursery
        self.channel = channel
        self.core = core
        self.service = service
        self.responses: dict[int, list[Any]] = {}
        self.ended = False
        self._arrival = trio.Event()

    @property
    def connection(self) -> Any:
        (connection,) = self.core._connections
        return connection

    async def send(self, *envelopes: bytes | str) -> None:
        """Send envelopes; a channel that has ended takes none."""
        for envelope in envelopes:
            try:
                await self.channel.send(envelope)
            except trio.BrokenResourceError:
                return

    async def read(self) -> None:
        """Collect all responses until the channel ends."""
        try:
            while True:
                data = await self.channel.receive()
                assert isinstance(data, bytes)
                response = E.Response.FromString(data)
                self.responses.setdefault(response.stream.id, []).append(response)
                self._arrival.set()
                self._arrival = trio.Event()
        except trio.EndOfChannel:
            self.ended = True

    async def end_of(self, sid: int) -> None:
        """Wait for the trailers of a call."""
        while self.status(sid) is None:
            await self._arrival.wait()

    def kinds(self, sid: int) -> list[str]:
        return [response.WhichOneof("type") for response in self.responses.get(sid, [])]

    def status(self, sid: int) -> Status | None:
        """Return the status of a call, None while it has none."""
        trailers = [each.trailers for each in self.responses.get(sid, []) if each.WhichOneof("type") == "trailers"]
        assert len(trailers) <= 1
        return Status(trailers[0].status.code) if trailers else None

    def texts(self, sid: int) -> list[str]:
        """Return the replies of a call that has sent whole messages."""
        data, replies = b"", []
        for response in self.responses.get(sid, []):
            if response.WhichOneof("type") == "message":
                data += response.message.packet_message.data
                if response.message.packet_message.eom:
                    replies.append(ServerReflectionResponse.FromString(data).valid_host)
                    data = b""
        assert not data
        return replies


@asynccontextmanager
async def raw(
    *, limits: Limits | None = None, rate: float = inf, reading: bool = True, identity: Any = None, **core: Any
) -> AsyncIterator[Raw]:
    service = EchoService()
    server = ServerCore(service.__mapping__(), limits=limits or Limits(), **core)
    async with memory_channels(rate=rate) as (near, far), trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve_channel, far, server, peer=PEER, identity=identity))
        opened = Raw(nursery, near, server, service)
        if reading:
            nursery.start_soon(opened.read)
        await trio.testing.wait_all_tasks_blocked()
        yield opened
        nursery.cancel_scope.cancel()
