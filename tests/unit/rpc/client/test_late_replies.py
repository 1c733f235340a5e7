"""A reply that arrived before its deadline was noticed is delivered; an incomplete one is not awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from trio.testing import MockClock, memory_stream_pump, wait_all_tasks_blocked

from tests.unit.rpc.echo import Rig, rig

Call = Callable[[Rig], Awaitable[Any]]


class Late:
    """A call with a timeout of 5 s whose reply is held back, unread."""

    def __init__(self, item: Rig, clock: MockClock) -> None:
        self.result: Any = None
        self._reply = item
        self._clock = clock

    async def run(self, call: Call) -> None:
        """Make the call; store its reply or its error."""
        try:
            self.result = await call(self._reply)
        except GRPCError as error:
            self.result = error

    async def wake(self, size: int | None = None) -> Any:
        """Resume after the deadline with `size` bytes of the reply received, or all of them if None."""
        client, server = self._reply.streams[0]
        if size != 0:
            assert memory_stream_pump(server.send_stream, client.receive_stream, max_bytes=size)
        self._clock.jump(6)
        await wait_all_tasks_blocked()
        return self.result


@asynccontextmanager
async def late(clock: MockClock, call: Call) -> AsyncIterator[Late]:
    async with rig() as first, trio.open_nursery() as nursery:
        await first.stub.Echo(Request(host="first"))
        await wait_all_tasks_blocked()
        first.streams[0][1].send_stream.send_all_hook = None  # replies stay in the stream until the test pumps them
        created = Late(first, clock)
        nursery.start_soon(created.run, call)
        await wait_all_tasks_blocked()
        yield created


@pytest.mark.parametrize("size", [1, 200_000])
async def test_a_reply_that_has_arrived_is_delivered(mock_clock: MockClock, size: int) -> None:
    text = "x" * size
    async with late(mock_clock, lambda item: item.stub.Echo(Request(host=text), timeout=5)) as call:
        assert (await call.wake()).valid_host == text


async def test_a_stream_of_replies_that_has_arrived_is_delivered(mock_clock: MockClock) -> None:
    async with late(mock_clock, lambda item: item.stub.Many(Request(host="10,3"), timeout=5)) as call:
        assert len(await call.wake()) == 10


async def test_an_error_that_has_arrived_is_delivered(mock_clock: MockClock) -> None:
    async with late(mock_clock, lambda item: item.stub.Fail(Request(host="grpc"), timeout=5)) as call:
        assert (await call.wake()).status is Status.NOT_FOUND


@pytest.mark.parametrize("size", [0, 40])
async def test_a_reply_that_is_not_complete_is_not_waited_for(mock_clock: MockClock, size: int) -> None:
    async with late(mock_clock, lambda item: item.stub.Echo(Request(host="x" * 1000), timeout=5)) as call:
        assert (await call.wake(size)).status is Status.DEADLINE_EXCEEDED


async def test_a_call_that_is_cancelled_is_not_held_up(mock_clock: MockClock) -> None:
    """A cancel scope of the caller ends the call immediately."""

    async def call(item: Rig) -> str:
        with trio.move_on_after(4) as scope:
            await item.stub.Echo(Request(host="x"), timeout=60)
        return "cancelled" if scope.cancelled_caught else "answered"

    async with late(mock_clock, call) as created:
        assert await created.wake(0) == "cancelled"
