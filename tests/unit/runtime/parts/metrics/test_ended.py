"""The observer of a call is notified once at its end, with bytes and status; over memory streams."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from grpclib.const import Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.unit.rpc.echo import Rig, rig

PREFIX = 5  # bytes of the prefix of each message

Ended = list[tuple[str, int | None, int, int]]
"""Method, status, bytes received and bytes sent of each call that has ended."""


def observe(item: Rig) -> Ended:
    """Return a list that receives every call that ends from now on."""
    messages: Ended = []

    def wrapped(handler: Handler) -> Handler:
        async def function(stream: Any) -> None:
            def ended(call: Any) -> None:
                messages.append((call.method.rpartition("/")[2], call.status, call.received, call.sent))

            stream.ended = ended
            await handler.func(stream)

        return Handler(function, handler.cardinality, handler.request_type, handler.reply_type)

    item.core.router = {path: wrapped(handler) for path, handler in item.service.__mapping__().items()}
    return messages


async def test_a_call_that_went_well(autojump_clock: MockClock) -> None:
    async with rig() as first:
        result = observe(first)
        await first.stub.Echo(Request(host="hello"))
        size, answer = Request(host="hello").ByteSize(), Reply(valid_host="hello").ByteSize()
        assert result == [("Echo", 0, PREFIX + size, answer)]


async def test_streams_count_all_their_messages(autojump_clock: MockClock) -> None:
    async with rig() as first:
        result = observe(first)
        await first.stub.Many(Request(host="40,5"))
        await first.stub.Collect([Request(host="abc")] * 40)
        (_, many, _, sent), (_, collect, received, _) = result
        assert (many, sent) == (0, 40 * Reply(valid_host="x" * 5).ByteSize())
        assert (collect, received) == (0, 40 * (PREFIX + Request(host="abc").ByteSize()))


@pytest.mark.parametrize(
    ("what", "status"),
    [
        ("grpc", Status.NOT_FOUND),
        ("machine", Status.FAILED_PRECONDITION),
        ("trailing", Status.DATA_LOSS),
        ("bug", Status.INTERNAL),
        ("nothing", Status.INTERNAL),
    ],
)
async def test_a_call_that_failed(what: str, status: Status, autojump_clock: MockClock) -> None:
    async with rig() as first:
        result = observe(first)
        with pytest.raises(GRPCError):
            await first.stub.Fail(Request(host=what))
        assert [(method, code) for method, code, *_ in result] == [("Fail", status.value)]


async def test_a_deadline_that_passed(autojump_clock: MockClock) -> None:
    async with rig() as first:
        result = observe(first)
        with pytest.raises((GRPCError, trio.TooSlowError, TimeoutError)):
            await first.stub.Hang(Request(host=""), timeout=1)
        await wait_all_tasks_blocked()
        assert [(method, code) for method, code, *_ in result] in (
            [("Hang", Status.DEADLINE_EXCEEDED.value)],
            [("Hang", None)],  # the client's own deadline came slightly earlier, so it left
        )


async def test_a_caller_that_went_away_leaves_no_status(autojump_clock: MockClock) -> None:
    async with rig() as first:
        result = observe(first)
        with trio.move_on_after(1):
            await first.stub.Hang(Request(host=""))
        await first.service.cancelled.wait()
        await wait_all_tasks_blocked()
        assert [(method, code) for method, code, *_ in result] == [("Hang", None)]


async def test_a_connection_that_is_lost_ends_its_calls_once(autojump_clock: MockClock) -> None:
    async with rig() as first:
        result = observe(first)
        async with trio.open_nursery() as nursery:

            async def hang() -> None:
                with pytest.raises(GRPCError):
                    await first.stub.Hang(Request(host=""))

            nursery.start_soon(hang)
            await first.service.started.wait()
            client, _ = first.streams[0]
            await client.aclose()
        await wait_all_tasks_blocked()
        assert [(method, code) for method, code, *_ in result] == [("Hang", None)]
