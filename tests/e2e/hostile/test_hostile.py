"""The table against a live server on loopback, while a well-behaved client keeps calling."""

from __future__ import annotations

import struct
import tracemalloc
from functools import partial
from typing import Any

import pytest
import trio
from grpclib.const import Cardinality, Handler
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply

from rpc.call import ServerCore
from rpc.client.channel import Channel
from rpc.http2.codec import frames
from rpc.http2.codec.hpack import Decoder
from rpc.http2.server import serve_http2
from tests.helpers.hostile import HTTP2, LIMITS, PATH, SETTINGS, Answer, Row
from tests.unit.rpc.echo import EchoService, Stub

MEMORY = 24 << 20  # bytes that server, attacker and good client may use in addition to what they start with


async def flood(stream: Any) -> None:
    await stream.recv_message()
    while True:
        await stream.send_message(Reply(valid_host="x" * 50_000))


class Attacker:
    """A raw socket that sends a row and reads the answer."""

    def __init__(self, stream: trio.SocketStream, row: Row) -> None:
        self.stream = stream
        self.row = row
        self.decoder = Decoder(table_size=4096, max_list=1 << 20)

    async def send(self) -> None:
        row = self.row
        start = frames.PREFACE + SETTINGS if row.preface else b""
        try:
            await self.stream.send_all(start + row.data * row.repeat)
        except trio.BrokenResourceError:
            pass  # the server closed the connection before the end

    async def answered(self) -> Answer:
        """Return the first answer of the row's kind; `closed` if the connection ends without one."""
        data = b""
        while True:
            while len(data) >= 9:
                size = int.from_bytes(data[:3], "big")
                if len(data) < 9 + size:
                    break
                answer = await self.send_frame(data[3], data[4], data[9 : 9 + size])
                data = data[9 + size :]
                if answer is not None and answer.kind == self.row.answer.kind:
                    return answer
            try:
                more = await self.stream.receive_some(65536)
            except trio.BrokenResourceError:
                more = b""
            if not more:
                return Answer("closed")
            data += bytes(more)

    async def send_frame(self, kind: int, flags: int, payload: bytes) -> Answer | None:
        if kind == frames.GOAWAY:
            return Answer("goaway", struct.unpack(">I", payload[4:8])[0])
        if kind == frames.RST_STREAM:
            return Answer("reset", struct.unpack(">I", payload)[0])
        if kind == frames.PING and not flags & frames.ACK and "PING" in self.row.answers:
            await self.stream.send_all(frames.ping(payload, ack=True))
        if kind == frames.HEADERS:
            fields = dict(self.decoder.decode(payload))
            expected = self.row.answer.kind
            if expected in fields:
                return Answer(expected, int(fields[expected]))
        return None


async def keep_calling(stub: Stub, served: list[int]) -> None:
    while True:
        assert (await stub.Echo(Request(host="good"), timeout=5)).valid_host == "good"
        served[0] += 1
        await trio.sleep(0.002)  # a pace, not a synchronization: without it the good client would itself be a flood


@pytest.mark.parametrize("row", HTTP2, ids=lambda row: row.name)
async def test_row(row: Row):
    service = EchoService()
    router = dict(service.__mapping__())
    router[PATH + "Flood"] = Handler(flood, Cardinality.UNARY_STREAM, Request, Reply)
    core = ServerCore(router, limits=LIMITS)
    served = [0]
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            serve = partial(trio.serve_tcp, partial(serve_http2, core=core), 0, host="127.0.0.1")
            port = (await nursery.start(serve))[0].socket.getsockname()[1]
            async with Channel(f"127.0.0.1:{port}") as channel, trio.open_nursery() as callers:
                await Stub(channel).Echo(Request(host="first"))
                callers.start_soon(keep_calling, Stub(channel), served)
                tracemalloc.start()
                try:
                    stream = await trio.open_tcp_stream("127.0.0.1", port)
                    attacker = Attacker(stream, row)
                    async with trio.open_nursery() as attack:
                        attack.start_soon(attacker.send)
                        if row.reads:
                            assert await attacker.answered() == row.answer
                        else:
                            while not core.statistics.refusals[row.reason]:  # noqa: ASYNC110 - counters have no event
                                await trio.sleep(0.01)
                        attack.cancel_scope.cancel()
                    await stream.aclose()
                    before = served[0]
                    while served[0] < before + 5 or core.statistics.open_connections > 1:  # noqa: ASYNC110
                        await trio.sleep(0.005)
                    peak = tracemalloc.get_traced_memory()[1]
                finally:
                    tracemalloc.stop()
                callers.cancel_scope.cancel()
            nursery.cancel_scope.cancel()
    assert peak < MEMORY
    refusals = core.statistics.refusals
    assert row.reason in refusals if row.reason else not refusals, refusals
