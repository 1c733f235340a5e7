"""Channels: lost and failed connections, closed channels, and servers that violate the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply

from rpc.client.channel import Channel
from rpc.http2.codec import frames
from rpc.limits import Limits
from tests.unit.rpc.echo import Stub, rig
from tests.unit.rpc.test_calls import refused

# Connections


async def test_a_lost_connection_ends_all_its_calls_and_the_next_makes_another(autojump_clock: trio.testing.MockClock):
    async with rig() as first:
        errors: list[GRPCError] = []

        async def unary() -> None:
            errors.append(await refused(first.stub.Hang(Request())))

        async def streaming() -> None:
            async with first.stub.Bidi.open() as stream:
                await stream.send_message(Request(host="x"))
                assert (await stream.recv_message()).valid_host == "x"
                errors.append(await refused(stream.recv_message()))
                errors.append(await refused(stream.send_message(Request(host="y"))))

        async def fails(call: Any) -> None:
            errors.append(await refused(call))

        async with trio.open_nursery() as nursery:
            for call in (unary, unary):
                nursery.start_soon(call)
            nursery.start_soon(lambda: fails(streaming()))
            await trio.testing.wait_all_tasks_blocked()
            await first.streams[0][1].aclose()
        assert [error.status for error in errors] == [Status.UNAVAILABLE] * 5
        for _ in range(3):
            await first.stub.Echo(Request(host="again"))
        assert len(first.streams) == 2
        assert first.channel.statistics.connections == 2


async def test_a_server_that_shuts_down_lets_calls_end_and_later_ones_go_elsewhere(
    autojump_clock: trio.testing.MockClock,
):
    async with rig() as first, trio.open_nursery() as nursery:
        totals = []

        async def upload() -> None:
            totals.append((await first.stub.Unread([Request(host="abc")])).valid_host)

        nursery.start_soon(upload)
        await first.service.started.wait()
        first.connection.drain()
        await trio.testing.wait_all_tasks_blocked()
        assert (await first.stub.Echo(Request(host="new"))).valid_host == "new"
        assert len(first.streams) == 2
        first.service.gate.set()
        await trio.testing.wait_all_tasks_blocked()
        assert totals == ["3"]
        assert first.core.statistics.open_connections == 1


async def test_a_server_that_cannot_be_had_is_asked_once_for_all_that_wait(autojump_clock: trio.testing.MockClock):
    async with rig(client_limits=Limits(handshake_timeout=7)) as first:
        attempts = 0

        async def silent() -> trio.abc.Stream:
            nonlocal attempts
            attempts += 1
            await trio.sleep_forever()
            raise AssertionError

        first.channel._connect = silent
        ended: list[float] = []

        async def call() -> None:
            error = await refused(first.stub.Echo(Request()))
            assert (error.status, error.message) == (Status.UNAVAILABLE, "cannot connect to machine:1: no answer")
            ended.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(call)
        assert (attempts, set(ended)) == (1, {7})
        first.channel._connect = first.connect
        await first.stub.Echo(Request()), "the next call tries again"


async def test_a_connection_that_was_made_while_this_process_stood_still_is_used(
    mock_clock: trio.testing.MockClock, nursery: trio.Nursery
):
    async with rig(client_limits=Limits(handshake_timeout=7)) as first:
        event = trio.Event()
        replies = []

        async def slow() -> trio.abc.Stream:
            await event.wait()
            await trio.lowlevel.checkpoint()
            return await first.connect()

        async def call() -> None:
            replies.append((await first.stub.Echo(Request(host="late"))).valid_host)

        first.channel._connect = slow
        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        event.set()
        mock_clock.jump(8)
        await trio.testing.wait_all_tasks_blocked()
        assert replies == ["late"]


async def test_a_cancelled_attempt_does_not_fail_other_calls(autojump_clock: trio.testing.MockClock):
    async with rig() as first:
        dialled = trio.Event()
        attempts = 0

        async def first_hangs() -> trio.abc.Stream:
            nonlocal attempts
            attempts += 1
            if attempts == 1:
                dialled.set()
                await trio.sleep_forever()
            return await first.connect()

        first.channel._connect = first_hangs
        replies = []

        async def impatient() -> None:
            with trio.move_on_after(1):
                await first.stub.Echo(Request(host="impatient"))

        async def patient() -> None:
            await dialled.wait()
            replies.append((await first.stub.Echo(Request(host="patient"))).valid_host)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(impatient)
            nursery.start_soon(patient)
        assert (replies, attempts) == (["patient"], 2)


@pytest.mark.parametrize("error", [OSError("refused"), trio.BrokenResourceError("TLS failed")])
async def test_a_failed_attempt_names_target_and_cause(error: Exception, autojump_clock: trio.testing.MockClock):
    async def fail() -> trio.abc.Stream:
        raise error

    async with Channel("machine:1", connect=fail) as channel:
        caught = await refused(Stub(channel).Echo(Request()))
        assert (caught.status, caught.message) == (Status.UNAVAILABLE, f"cannot connect to machine:1: {error}")


async def test_a_channel_is_used_within_its_block():
    channel = Channel("machine:1")
    with pytest.raises(RuntimeError, match="async with"):
        await Stub(channel).Echo(Request())
    assert repr(channel) == "Channel('machine:1')"


async def test_closing_ends_the_calls(autojump_clock: trio.testing.MockClock):
    async with rig() as first:
        errors = []

        async def call() -> None:
            errors.append(await refused(first.stub.Hang(Request())))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await first.service.started.wait()
            first.channel.close()
        assert errors[0].status is Status.UNAVAILABLE
        await first.service.cancelled.wait()


async def test_calls_wait_for_a_free_stream(autojump_clock: trio.testing.MockClock):
    async with rig(limits=Limits(max_streams=2)) as first:
        await first.stub.Echo(Request())
        async with trio.open_nursery() as nursery:
            done = []

            async def call() -> None:
                done.append((await first.stub.Unread([Request(host="abc")])).valid_host)

            for _ in range(5):
                nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            assert len(first.connection.streams) == 2
            first.service.gate.set()
        assert done == ["3"] * 5
        assert not first.core.statistics.refusals


async def test_a_call_that_waits_for_a_stream_hears_of_the_lost_connection(autojump_clock: trio.testing.MockClock):
    async with rig(limits=Limits(max_streams=1)) as first:
        await first.stub.Echo(Request())
        async with trio.open_nursery() as nursery:
            errors = []

            async def call() -> None:
                errors.append((await refused(first.stub.Hang(Request()))).status)

            nursery.start_soon(call)
            nursery.start_soon(call)
            await first.service.started.wait()
            await trio.testing.wait_all_tasks_blocked()
            await first.streams[0][1].aclose()
        assert errors == [Status.UNAVAILABLE] * 2


async def test_a_time_limit_while_waiting_for_a_stream(autojump_clock: trio.testing.MockClock):
    async with rig(limits=Limits(max_streams=1)) as first:
        await first.stub.Echo(Request())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first.stub.Hang, Request())
            await first.service.started.wait()
            assert (await refused(first.stub.Echo(Request(), timeout=3))).status is Status.DEADLINE_EXCEEDED
            assert trio.current_time() == pytest.approx(3)
            nursery.cancel_scope.cancel()
        assert (await first.stub.Echo(Request(host="on"))).valid_host == "on"


# Servers that violate the protocol


@asynccontextmanager
async def scripted(answer: bytes, *, limits: Limits | None = None) -> AsyncIterator[Stub]:
    """Yield a stub whose server sends `answer` after a request has arrived, and nothing more."""
    async with trio.open_nursery() as nursery:

        async def connect() -> trio.abc.Stream:
            client, server = trio.testing.memory_stream_pair()

            async def serve() -> None:
                received = b""
                while b"\x83\x86" not in received:  # the header block of a request begins with POST and http
                    received += await server.receive_some(65536)
                await server.send_all(frames.settings([]) + answer)
                async for _ in server:
                    pass

            nursery.start_soon(serve)
            return client

        async with Channel("machine:1", connect=connect, limits=limits) as channel:
            yield Stub(channel)
        nursery.cancel_scope.cancel()


HEAD = b"\x88\x5f\x10application/grpc"  # :status 200 and the content type, as literals


def headers(block: bytes, *, end: bool = False) -> bytes:
    return frames.headers(1, block, end=end, max_frame=16384)


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        (headers(b"\x8d", end=True), Status.UNIMPLEMENTED, "HTTP status 404"),
        (headers(b"\x88\x5f\x09text/html"), Status.UNKNOWN, "content type 'text/html' instead of application/grpc"),
        (headers(HEAD, end=True), Status.UNKNOWN, "the response has no valid grpc-status"),
        (headers(HEAD) + frames.frame(0, 1, 1, b"\0\0\0\0\0"), Status.INTERNAL, "the response ended without a status"),
        (headers(HEAD) + frames.rst_stream(1, 8), Status.CANCELLED, "the peer reset the stream with CANCEL"),
        (headers(HEAD) + frames.rst_stream(1, 7), Status.UNAVAILABLE, "the peer reset the stream with REFUSED_STREAM"),
        (headers(HEAD) + headers(b"\x40\x01x\x01y"), Status.INTERNAL, "headers in the middle of the response"),
        (headers(b"\x40\x01x\x01y"), Status.INTERNAL, "a response without :status"),
        (
            headers(HEAD + b"\x40\x0dgrpc-encoding\x02br"),
            Status.INTERNAL,
            "the server uses a compression that was not offered",
        ),
        (headers(HEAD) + frames.frame(0, 0, 1, b"\0\0\0\0\3\xff\xff\xff"), Status.INTERNAL, "the reply is not a valid"),
        (frames.goaway(0, 0), Status.UNAVAILABLE, "the server is shutting down"),
        (
            frames.goaway(0, 0, "handshake timeout"),
            Status.UNAVAILABLE,
            "the server closed the connection: NO_ERROR, handshake",
        ),
        (frames.goaway(0, 11), Status.UNAVAILABLE, "the server closed the connection: ENHANCE_YOUR_CALM"),
        (frames.frame(frames.DATA, 0, 3, b"x"), Status.UNAVAILABLE, "the connection was lost"),
        (frames.frame(frames.PUSH_PROMISE, 4, 1, b"\0\0\0\2"), Status.UNAVAILABLE, "the connection was lost"),
    ],
)
async def test_answers_of_servers(answer: bytes, status: Status, message: str, autojump_clock: trio.testing.MockClock):
    async with scripted(answer) as stub:
        error = await refused(stub.Echo(Request(), timeout=5))
        assert error.status is status, error
        assert str(error.message).startswith(message)


async def test_interim_responses_are_passed_over(autojump_clock: trio.testing.MockClock):
    reply = Reply(valid_host="x").SerializeToString()
    body = frames.frame(0, 0, 1, b"\0" + len(reply).to_bytes(4, "big") + reply)
    interim = headers(b"\x08\x03103")
    trailers = headers(b"\x40\x0bgrpc-status\x010", end=True)
    async with scripted(interim + interim + headers(HEAD) + body + trailers) as stub:
        assert (await stub.Echo(Request(), timeout=5)).valid_host == "x"


async def test_a_server_that_floods_its_client(autojump_clock: trio.testing.MockClock):
    async with scripted(frames.frame(frames.PRIORITY, 0, 1, b"\0\0\0\3\0") * 300, limits=Limits(glitch_burst=200)) as s:
        error = await refused(s.Echo(Request(), timeout=5))
        assert error.status is Status.UNAVAILABLE
        assert s.Echo.channel.statistics.refusals == {"useless frames": 1}


async def test_a_reply_above_the_limit(autojump_clock: trio.testing.MockClock):
    async with rig(client_limits=Limits(max_message=1000)) as first:
        error = await refused(first.stub.Echo(Request(host="x" * 2000)))
        assert error.status is Status.RESOURCE_EXHAUSTED
        assert (await first.stub.Echo(Request(host="on"))).valid_host == "on"
