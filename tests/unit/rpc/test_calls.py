"""Calls from a stub to a handler through the complete client and server, on memory streams."""

from __future__ import annotations

import gzip
import struct
import zlib
from itertools import pairwise

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply

from rpc.client.channel import Channel
from rpc.limits import Limits
from tests.unit.rpc.echo import PATH, Stub, rig


async def refused(awaitable: object) -> GRPCError:
    with pytest.raises(GRPCError) as caught:
        await awaitable  # type: ignore[misc]
    return caught.value


async def test_an_unread_call_does_not_stop_the_others(autojump_clock: trio.testing.MockClock):
    async with (
        rig(limits=Limits(stream_window=70_000, connection_window=80_000)) as first,
        trio.open_nursery() as nursery,
    ):
        answer = []

        async def upload() -> None:
            answer.append(await first.stub.Unread([Request(host="x" * 50_000)] * 10))

        nursery.start_soon(upload)
        await first.service.started.wait()
        await trio.testing.wait_all_tasks_blocked()
        (stream,) = first.connection.streams.values()
        # At most one message, whose bytes were returned while it was incomplete, and one window
        assert stream.receiver._inbox.budget.used <= 50_020 + 70_000
        assert (await first.stub.Echo(Request(host="y" * 200_000))).valid_host == "y" * 200_000
        first.service.gate.set()
    assert answer[0].valid_host == "500000"


async def test_the_user_agent(autojump_clock: trio.testing.MockClock):
    async with rig() as first:
        await first.stub.Echo(Request(host="x"))
        assert first.service.seen[0].user_agent.startswith("grpc-python-grpclib")


async def test_a_lost_connection_cancels_its_calls(autojump_clock: trio.testing.MockClock):
    async with rig() as first, trio.open_nursery() as nursery:
        errors = []

        async def call() -> None:
            errors.append(await refused(first.stub.Hang(Request())))

        nursery.start_soon(call)
        await first.service.started.wait()
        _, server = first.streams[0]
        server.send_stream.close()
        server.receive_stream.close()
        await first.service.cancelled.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert errors[0].status is Status.UNAVAILABLE
        assert (await first.stub.Echo(Request(host="again"))).valid_host == "again"
        assert len(first.streams) == 2, "the next call has made a new connection"


async def test_a_server_that_goes_away_entirely(autojump_clock: trio.testing.MockClock):
    async with rig() as first:

        async def unreachable() -> trio.abc.Stream:
            raise OSError("connection refused")

        first.channel._connect = unreachable
        error = await refused(first.stub.Echo(Request()))
        assert error.status is Status.UNAVAILABLE
        assert "machine:1: connection refused" in str(error.message)


async def test_a_server_that_never_answers(autojump_clock: trio.testing.MockClock):
    async with rig(client_limits=Limits(handshake_timeout=7)) as first:
        first.channel._connect = trio.sleep_forever
        error = await refused(first.stub.Echo(Request()))
        assert error.status is Status.UNAVAILABLE
        assert trio.current_time() == 7


async def test_a_stream_that_never_waits_lets_others_run(autojump_clock: trio.testing.MockClock):
    window = 1 << 30
    limits = Limits(stream_window=window, connection_window=window, send_high_water=window, send_limit=window)
    async with rig(limits=limits, client_limits=limits) as first, trio.open_nursery() as nursery:
        sent = 0
        seen: list[int] = []

        async def flood(stream: object) -> None:
            nonlocal sent
            await stream.recv_message()  # type: ignore[attr-defined]
            for _ in range(2000):
                sent += 1
                await stream.send_message(Reply(valid_host="x"))  # type: ignore[attr-defined]

        async def watch() -> None:
            while sent < 2000:
                seen.append(sent)
                await trio.lowlevel.checkpoint()

        path = PATH + "Many"
        first.core.router[path] = first.core.router[path]._replace(func=flood)
        await first.stub.Echo(Request())
        nursery.start_soon(first.stub.Many, Request())
        nursery.start_soon(watch)
        await trio.testing.wait_all_tasks_blocked()
        steps = [later - earlier for earlier, later in pairwise(seen)]
        assert max(steps) <= 32, "two turns: the scheduler shuffles each pass"
        assert sent == 2000


async def test_unread_replies_stop_the_sender(autojump_clock: trio.testing.MockClock):
    limits = Limits(stream_window=70_000)
    async with rig(client_limits=limits) as first:
        async with first.stub.Many.open() as stream:
            await stream.send_message(Request(host="1000,1000"), end=True)
            await stream.recv_initial_metadata()
            await trio.testing.wait_all_tasks_blocked()
            (state,) = first.connection.streams.values()
            assert 0 <= state.send_window < 1008, "the handler waits for window"
            assert first.connection.writer.size == 0
            assert len([message async for message in stream]) == 1000


async def test_compressed_requests(autojump_clock: trio.testing.MockClock):
    async with rig() as first:
        compress = {"gzip": gzip.compress, "deflate": zlib.compress}
        cases = (("gzip", None), ("deflate", None), ("identity", None), ("br", Status.UNIMPLEMENTED))
        for encoding, status in cases:
            async with first.stub.Echo.open() as stream:
                stream._metadata.append(("grpc-encoding", encoding))
                await stream.send_request()
                data = Request(host="hello").SerializeToString()
                flag = encoding in compress
                data = compress[encoding](data) if flag else data
                await stream._send(struct.pack(">BI", flag, len(data)) + data, end=True)
                if status is None:
                    assert (await stream.recv_message()).valid_host == "hello"
                else:
                    assert (await refused(stream.recv_message())).status is status


async def test_an_error_in_the_block_leaves_as_it_is(autojump_clock: trio.testing.MockClock):
    with pytest.raises(ZeroDivisionError):
        async with Channel("localhost:1"):
            raise ZeroDivisionError


async def test_a_cancelled_channel(autojump_clock: trio.testing.MockClock):
    async with rig() as first:
        with trio.move_on_after(1) as scope:
            async with Channel("machine:1", connect=first.connect) as channel:
                await Stub(channel).Hang(Request())
        assert scope.cancelled_caught
