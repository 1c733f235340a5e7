"""Calls from a stub to a handler through the complete client and server, over every carrier."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError, ProtocolError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply

from rpc.carrier import Identity
from rpc.limits import Limits
from tests.unit.rpc.echo import PATH, channel_rig, rig, web_rig
from tests.unit.rpc.test_calls import refused

OpenRig: TypeAlias = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture(params=[rig, channel_rig, web_rig], ids=["HTTP/2", "data channel", "gRPC-Web"])
def open_rig(request: pytest.FixtureRequest) -> OpenRig:
    opener: OpenRig = request.param
    return opener


async def test_all_four_kinds(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    async with open_rig() as first:
        assert (await first.stub.Echo(Request(host="hello"))).valid_host == "hello"
        assert [len(reply.valid_host) for reply in await first.stub.Many(Request(host="40,5"))] == [5] * 40
        assert (await first.stub.Collect([Request(host="abc")] * 40)).valid_host == "120"
        assert (await first.stub.Collect([])).valid_host == "0"
        texts = [str(number) for number in range(40)]
        replies = await first.stub.Bidi([Request(host=text) for text in texts])
        assert [reply.valid_host for reply in replies] == texts
        assert first.core.statistics.calls == 5
        assert first.core.statistics.failed_calls == first.core.statistics.cancelled_calls == 0
        assert first.held() == 0


async def test_messages_larger_than_every_window(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    limits = Limits(stream_window=70_000, connection_window=80_000, send_high_water=10_000)
    async with open_rig(limits=limits, client_limits=limits) as first:
        text = "x" * 1_000_000
        assert (await first.stub.Echo(Request(host=text))).valid_host == text


async def test_many_large_calls_at_once_do_not_block_each_other(
    open_rig: OpenRig, autojump_clock: trio.testing.MockClock
):
    limits = Limits(stream_window=70_000, connection_window=80_000, send_high_water=10_000, max_streams=5)
    async with open_rig(limits=limits, client_limits=limits) as first:
        sizes = []

        async def call(size: int) -> None:
            sizes.append(len((await first.stub.Echo(Request(host="x" * size))).valid_host))

        async with trio.open_nursery() as nursery:
            for size in range(100_000, 120_000, 1000):
                nursery.start_soon(call, size)
        assert sorted(sizes) == list(range(100_000, 120_000, 1000))


async def test_metadata_both_ways(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    async with open_rig() as first:
        sent = {"word": "value", "data-bin": b"\0\1\xff"}
        await first.stub.Echo(Request(host="x"), metadata=sent)
        call = first.service.seen[0]
        assert dict(call.metadata) == sent
        assert call.method == PATH + "Echo"
        assert call.deadline is None
        async with first.stub.Fail.open() as stream:
            await stream.send_message(Request(host="trailing"), end=True)
            await stream.recv_initial_metadata()
            assert dict(stream.initial_metadata) == {"first": "1", "data-bin": b"\0\xff"}
            error = await refused(stream.recv_trailing_metadata())
            assert dict(stream.trailing_metadata) == {"last": "2"}
        assert (error.status, error.message) == (Status.DATA_LOSS, "lost")


async def test_error_details_and_message_encoding(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    async with open_rig() as first:
        error = await refused(first.stub.Fail(Request(host="grpc")))
        assert error.status is Status.NOT_FOUND
        assert error.message in ("nö 100%\n", "nö 100% ")  # data channels carry no line ends: see response_trailers
        assert [detail.valid_host for detail in error.details] == ["detail"]


@pytest.mark.parametrize(
    ("what", "status", "message"),
    [
        ("machine", Status.FAILED_PRECONDITION, "no such motor: configure one"),
        ("group", Status.ABORTED, "leaf"),
        ("nothing", Status.INTERNAL, "the handler returned without a reply"),
    ],
)
async def test_errors_of_handlers(
    what: str, status: Status, message: str, open_rig: OpenRig, autojump_clock: trio.testing.MockClock
):
    async with open_rig() as first:
        error = await refused(first.stub.Fail(Request(host=what)))
        assert (error.status, error.message) == (status, message)


async def test_a_bug_is_logged_here_and_hidden_there(
    open_rig: OpenRig, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
):
    async with open_rig() as first:
        error = await refused(first.stub.Fail(Request(host="bug")))
        assert error.status is Status.INTERNAL
        assert "secret" not in str(error)
        (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert record.exc_info is not None
        assert "secret detail" in str(record.exc_info[1])


async def test_unknown_method(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    async with open_rig() as first:
        error = await refused(first.stub.Missing(Request()))
        assert error.status is Status.UNIMPLEMENTED
        assert PATH + "Missing" in str(error.message)


async def test_deadline_reaches_the_handler(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    async with open_rig() as first:
        error = await refused(first.stub.Hang(Request(), timeout=5))
        assert error.status is Status.DEADLINE_EXCEEDED
        assert trio.current_time() == pytest.approx(5, abs=0.01)
        await first.service.cancelled.wait()


async def test_the_server_keeps_the_deadline_by_itself(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    async with open_rig() as first:
        error = await refused(first.stub.Hang(Request(), metadata=None, timeout=5))
        assert error.status is Status.DEADLINE_EXCEEDED

        async def call() -> None:
            """Call without the client's own cancel scope: the header alone sets the deadline."""
            async with first.stub.Hang.open() as stream:
                stream._metadata.append(("grpc-timeout", "3S"))
                await stream.send_message(Request(), end=True)
                await stream.recv_message()

        before = trio.current_time()
        error = await refused(call())
        assert (error.status, error.message) == (Status.DEADLINE_EXCEEDED, "deadline exceeded")
        assert trio.current_time() - before == pytest.approx(3)


async def test_cancelling_the_client_cancels_the_handler(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    async with open_rig() as first:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first.stub.Hang, Request())
            await first.service.started.wait()
            nursery.cancel_scope.cancel()
        await first.service.cancelled.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert first.core.statistics.cancelled_calls == 1
        assert first.held() == 0
        assert (await first.stub.Echo(Request(host="on"))).valid_host == "on", "the connection lives on"


async def test_leaving_a_stream_early_aborts_it(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    async with open_rig() as first:
        async with first.stub.Many.open() as stream:
            await stream.send_message(Request(host="1000000,1000"), end=True)
            async for _ in stream:
                break
        await trio.testing.wait_all_tasks_blocked()
        assert first.held() == 0
        assert first.core.statistics.cancelled_calls == 1


async def test_explicit_cancel(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    async with open_rig() as first:
        async with first.stub.Hang.open() as stream:
            await stream.send_message(Request(), end=True)
            await first.service.started.wait()
            await stream.cancel()
        await first.service.cancelled.wait()


async def test_misuse_of_a_client_call(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    async with open_rig() as first:
        async with first.stub.Collect.open() as stream:
            with pytest.raises(ProtocolError):
                await stream.end()
            await stream.send_request()
            with pytest.raises(ProtocolError):
                await stream.send_request()
            await stream.end()
            with pytest.raises(ProtocolError):
                await stream.send_message(Request())
            assert (await stream.recv_message()).valid_host == "0"


async def test_misuse_of_a_server_call(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    async with open_rig() as first:
        seen = []

        async def twice(stream: Any) -> None:
            await stream.recv_message()
            for wrong in (Request(), None):
                with pytest.raises(TypeError):
                    await stream.send_message(wrong)
            await stream.send_message(Reply(valid_host="1"))
            for method in (stream.send_message, stream.send_initial_metadata):
                with pytest.raises(ProtocolError):
                    await (method(Reply()) if method == stream.send_message else method())
            seen.append(True)

        path = PATH + "Echo"
        first.core.router[path] = first.core.router[path]._replace(func=twice)
        assert (await first.stub.Echo(Request())).valid_host == "1"
        assert seen


async def test_authorize(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    def authorize(method: str, metadata: Any) -> Identity | None:
        token = metadata.get("authorization")
        if token == "Bearer good":
            return Identity("somebody", "api-key", {"secret": "claim"})
        if token == "Bearer broken":
            raise RuntimeError("bug")
        raise GRPCError(Status.UNAUTHENTICATED, "who are you?")

    async with open_rig(authorize=authorize) as first:
        error = await refused(first.stub.Echo(Request()))
        assert (error.status, error.message) == (Status.UNAUTHENTICATED, "who are you?")
        assert (
            await refused(first.stub.Echo(Request(), metadata={"authorization": "Bearer broken"}))
        ).status is Status.INTERNAL
        await first.stub.Echo(Request(), metadata={"authorization": "Bearer good"})
        assert first.service.seen[0].identity.entity == "somebody"
        assert "claim" not in repr(first.service.seen[0].identity)


async def test_a_request_that_is_not_protobuf(open_rig: OpenRig, autojump_clock: trio.testing.MockClock):
    async with open_rig() as first:

        async def call() -> None:
            async with first.stub.Echo.open() as stream:
                await stream.send_request()
                await stream._send(b"\0\0\0\0\3\xff\xff\xff", end=True)
                await stream.recv_message()

        error = await refused(call())
        assert error.status is Status.INTERNAL
        assert "ServerReflectionRequest" in str(error.message)
