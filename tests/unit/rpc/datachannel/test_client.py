"""Client calls over a data channel whose other end answers as it likes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from trio.testing import wait_all_tasks_blocked

from rpc.datachannel.client import CallChannel
from rpc.limits import Limits
from rpc.peers.channel import MessageChannel
from rpc.peers.memory import memory_channels
from rpc.peers.port import MAX_MESSAGE
from tests.unit.rpc.datachannel.raw import HELLO, E, stream
from tests.unit.rpc.echo import Stub, channel_rig

LIMITS = Limits(max_message=200_000, max_buffered=1_000_000, stream_window=100_000, max_header_list=4_096)
BIG = bytes(60_000)


def response(sid: int = 1, **fields: Any) -> bytes:
    return bytes(E.Response(stream=stream(sid), **fields).SerializeToString())


def message(data: bytes = HELLO, *, eom: bool = True) -> bytes:
    return response(message=E.ResponseMessage(packet_message=E.PacketMessage(data=data, eom=eom)))


def trailers(code: int = 0, text: str = "", **metadata: str) -> bytes:
    end = E.ResponseTrailers()
    end.status.code, end.status.message = code, text
    for key, value in metadata.items():
        end.metadata.md[key].values.append(value)
    return response(trailers=end)


HEADERS = response(headers={})
OK = trailers()

# Name of the row: responses to a unary call, its status, and part of its text
RESPONSES: dict[str, tuple[Iterable[bytes | str], Status, str]] = {
    "a status only": ([trailers(5, "no motor")], Status.NOT_FOUND, "no motor"),
    "headers and a status": ([HEADERS, trailers(5, "no motor")], Status.NOT_FOUND, "no motor"),
    "a status without a code after headers": ([HEADERS, response(trailers={})], Status.OK, ""),
    "an unknown status": ([trailers(77)], Status.UNKNOWN, "no valid grpc-status"),
    "a message before the headers": ([message(), OK], Status.INTERNAL, "before the headers"),
    "headers twice": ([HEADERS, HEADERS], Status.INTERNAL, "twice"),
    "the end inside a message": ([HEADERS, message(eom=False), OK], Status.INTERNAL, "in the middle of a message"),
    "an error inside a message": ([HEADERS, message(eom=False), trailers(5)], Status.NOT_FOUND, ""),
    "not a message": ([HEADERS, message(b"\xff\xff"), OK], Status.INTERNAL, "not a valid"),
    "a message that is too large": ([HEADERS, *[message(BIG, eom=False)] * 4], Status.RESOURCE_EXHAUSTED, "limit"),
    "unread messages": ([HEADERS, *[message(BIG)] * 6], Status.RESOURCE_EXHAUSTED, "unread"),
    "metadata that is too large": ([trailers(0, a="x" * 5_000)], Status.RESOURCE_EXHAUSTED, "metadata"),
    "metadata with a line break": ([trailers(0, a="x\ny")], Status.INTERNAL, "not text"),
    "text": ([HEADERS, "hello"], Status.UNAVAILABLE, "ended"),
    "not an envelope": ([HEADERS, b"\xff"], Status.UNAVAILABLE, "ended"),
    "envelopes without effect": ([response(9, headers={})] * 20_000, Status.UNAVAILABLE, "ended"),
}


async def answered(responses: Iterable[bytes | str], call: Callable[[Stub], Awaitable[Any]]) -> list[Any]:
    """Make a call whose request is answered with `responses`; return the envelopes that the server has received."""
    received: list[Any] = []

    async def serve(channel: MessageChannel) -> None:
        for answer in responses:
            channel.send_nowait(answer)
        try:
            while True:
                data = await channel.receive()
                assert isinstance(data, bytes)
                received.append(E.Request.FromString(data))
        except trio.EndOfChannel:
            pass

    async with memory_channels() as (near, far), trio.open_nursery() as nursery:
        async with CallChannel(near, limits=LIMITS) as channel:
            async with trio.open_nursery() as calls:
                calls.start_soon(call, Stub(channel))
                await wait_all_tasks_blocked()
                nursery.start_soon(serve, far)
            await wait_all_tasks_blocked()
    return received


async def read_late(stub: Stub) -> None:
    """Call, and read the replies when all have arrived."""
    async with stub.Many.open() as call:
        await call.send_message(Request(), end=True)
        await call.recv_initial_metadata()
        await wait_all_tasks_blocked()
        async for _ in call:
            pass


async def collect_nothing(stub: Stub) -> None:
    async with stub.Collect.open() as call:
        await call.send_request(end=True)
        await call.recv_message()


@pytest.mark.parametrize("row", RESPONSES)
async def test_responses(row: str) -> None:
    answers, status, text = RESPONSES[row]

    async def call(stub: Stub) -> None:
        if status is Status.OK:
            assert await stub.Many(Request()) == []
            return
        with pytest.raises(GRPCError) as caught:
            await read_late(stub)
        assert caught.value.status is status
        assert text in str(caught.value.message)

    received = await answered(answers, call)
    ended_here = text in ("before the headers", "twice", "in the middle of a message", "limit", "unread", "not text")
    assert (received[-1].WhichOneof("type") == "rst_stream") is (ended_here or text == "metadata")


async def test_the_requests_in_their_format() -> None:
    async def calls(stub: Stub) -> None:
        with pytest.raises(GRPCError):
            await stub.Echo(Request(host="x" * 70_000), timeout=2.5, metadata={"word": "a", "data-bin": b"\0\xff"})

    async def empty(stub: Stub) -> None:
        with pytest.raises(GRPCError):
            await collect_nothing(stub)

    head, first, last = (await answered([trailers(5)], calls))[:3]
    assert head.stream.id == first.stream.id == last.stream.id == 1
    assert head.headers.method == "/test.v1.EchoService/Echo"
    assert 2 < head.headers.timeout.seconds + head.headers.timeout.nanos / 1e9 <= 2.5
    assert {key: list(values.values) for key, values in head.headers.metadata.md.items()} == {
        "word": ["a"],
        "data-bin": ["AP8"],
    }
    assert (first.message.has_message, first.message.packet_message.eom, first.message.eos) == (True, False, False)
    assert (last.message.has_message, last.message.packet_message.eom, last.message.eos) == (True, True, True)
    assert len(first.SerializeToString()) <= MAX_MESSAGE
    head, end = await answered([HEADERS, trailers(5)], empty)
    assert not head.headers.HasField("timeout")
    assert end.message == E.RequestMessage(eos=True)


async def test_metadata_that_does_not_fit_is_refused_here() -> None:
    async with channel_rig() as first:
        with pytest.raises(GRPCError) as caught:
            await first.stub.Echo(Request(), metadata={"word": "x" * MAX_MESSAGE})
        assert caught.value.status is Status.RESOURCE_EXHAUSTED
        assert (await first.stub.Echo(Request(host="next"))).valid_host == "next"


async def test_calls_wait_for_a_place() -> None:
    limits = Limits(max_streams=3)
    async with channel_rig(limits=limits, client_limits=limits) as first:
        done = []

        async def call(number: int) -> None:
            done.append((await first.stub.Echo(Request(host=str(number)))).valid_host)

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(call, number)
        assert len(done) == 20


async def test_calls_after_the_end_of_the_channel_fail_at_once() -> None:
    async with channel_rig() as first:
        first.connection.close()
        await first.channel.lost()
        with pytest.raises(GRPCError) as caught:
            await first.stub.Echo(Request())
        assert caught.value.status is Status.UNAVAILABLE


async def test_an_error_in_the_block_leaves_as_it_is() -> None:
    async with memory_channels() as (near, _far):
        with pytest.raises(ZeroDivisionError):
            async with CallChannel(near):
                raise ZeroDivisionError


async def test_a_call_before_the_channel_is_open_waits_and_ends_with_it() -> None:
    class Link:
        buffered = 0

        def transmit(self, data: bytes | str) -> None:
            raise AssertionError

        def shut(self) -> None:
            pass

    closed = MessageChannel("data", Link())
    async with CallChannel(closed) as channel, trio.open_nursery() as nursery:

        async def call() -> None:
            with pytest.raises(GRPCError) as caught:
                await Stub(channel).Echo(Request())
            assert caught.value.status is Status.UNAVAILABLE

        nursery.start_soon(call)
        await wait_all_tasks_blocked()
        closed.ended()
