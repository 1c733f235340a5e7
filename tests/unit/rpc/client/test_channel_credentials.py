"""Channels whose credentials are revoked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply

from rpc.limits import Limits
from tests.unit.rpc.echo import PATH, Rig, rig
from tests.unit.rpc.test_calls import refused


class Tokens:
    """Credentials that return `Bearer 1`, `Bearer 2` and so on, with a new token after each refusal."""

    def __init__(self, *, gate: trio.Event | None = None) -> None:
        self.serial = 1
        self.refusals = 0
        self.gate = gate
        self.error: GRPCError | None = None

    async def headers(self, channel: object) -> tuple[tuple[str, str], ...]:
        await trio.lowlevel.checkpoint()
        if self.gate is not None and self.refusals:
            await self.gate.wait()
        if self.error is not None and self.refusals:
            raise self.error
        return (("authorization", f"Bearer {self.serial}"),)

    def rejected(self) -> None:
        self.refusals += 1
        self.serial += 1


class Door:
    """An `authorize` hook for `ServerCore` that accepts only the credentials `wanted`."""

    def __init__(self, expected: str) -> None:
        self.accepted = expected
        self.asked = 0

    def __call__(self, method: str, metadata: Any) -> None:
        self.asked += 1
        if metadata.get("authorization") != self.accepted:
            raise GRPCError(Status.UNAUTHENTICATED, "no")


@asynccontextmanager
async def guarded(expected: str, tokens: Tokens, **limits: Any) -> AsyncIterator[tuple[Rig, Door]]:
    door = Door(expected)
    async with rig(authorize=door, **limits) as first:
        first.channel._credentials = tokens
        yield first, door


async def test_a_void_token_is_replaced_within_the_call(autojump_clock: trio.testing.MockClock):
    tokens = Tokens()
    async with guarded("Bearer 2", tokens) as (first, door):
        assert (await first.stub.Echo(Request(host="x"))).valid_host == "x"
        assert (door.asked, tokens.refusals) == (2, 1)
        assert len(await first.stub.Many(Request(host="40,5"))) == 40
        assert (door.asked, tokens.refusals) == (3, 1)
        door.accepted = "Bearer 3"
        assert len(await first.stub.Many(Request(host="40,5"))) == 40
        assert (door.asked, tokens.refusals) == (5, 2)
        assert first.channel.statistics.failed_calls == 0
        assert first.connection.streams == {}
        assert len(first.streams) == 1, "on the same connection"


async def test_only_once(autojump_clock: trio.testing.MockClock):
    tokens = Tokens()
    async with guarded("none", tokens) as (first, door):
        assert (await refused(first.stub.Echo(Request()))).status is Status.UNAUTHENTICATED
        assert (door.asked, tokens.refusals) == (2, 2)
        assert (await refused(first.stub.Many(Request(host="1,1")))).status is Status.UNAUTHENTICATED
        assert (door.asked, tokens.refusals) == (4, 4)
        assert first.channel.statistics.failed_calls == 2


async def test_a_failed_reauthentication_is_the_answer(autojump_clock: trio.testing.MockClock):
    tokens = Tokens()
    tokens.error = GRPCError(Status.RESOURCE_EXHAUSTED, "too many attempts")
    async with guarded("Bearer 2", tokens) as (first, door):
        error = await refused(first.stub.Echo(Request()))
        assert (error.status, error.message) == (Status.RESOURCE_EXHAUSTED, "too many attempts")
        assert door.asked == 1
        tokens.error = None
        await first.stub.Echo(Request())


async def test_streams_of_requests_are_not_sent_again(autojump_clock: trio.testing.MockClock):
    tokens = Tokens()
    async with guarded("Bearer 2", tokens) as (first, door):
        assert (await refused(first.stub.Collect([Request(host="abc")]))).status is Status.UNAUTHENTICATED
        assert (door.asked, tokens.refusals) == (1, 1)
        assert (await first.stub.Collect([Request(host="abc")])).valid_host == "3", "the next call has a new token"


async def test_calls_without_credentials_do_not_count_as_failures(autojump_clock: trio.testing.MockClock):
    tokens = Tokens()
    async with guarded("Bearer 1", tokens) as (first, _):
        bare = first.channel.request(PATH + "Echo", Cardinality.UNARY_UNARY, Request, Reply, credentials=False)
        async with bare as stream:
            await stream.send_message(Request(), end=True)
            assert (await refused(stream.recv_message())).status is Status.UNAUTHENTICATED
        assert tokens.refusals == 0


async def test_one_new_token_for_all_calls_that_were_refused(autojump_clock: trio.testing.MockClock):
    gate = trio.Event()
    tokens = Tokens(gate=gate)
    async with guarded("Bearer 2", tokens) as (first, _):
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(first.stub.Echo, Request(host="x"))
            await trio.testing.wait_all_tasks_blocked()
            gate.set()
        assert tokens.refusals == 1
        assert len(first.service.seen) == 10


async def test_a_refusal_in_the_middle_of_a_large_request(autojump_clock: trio.testing.MockClock):
    """The server refuses the call while its message is still waiting for flow-control window."""
    tokens = Tokens()
    limits = Limits(stream_window=65_535, connection_window=65_535)
    async with guarded("Bearer 2", tokens, limits=limits) as (first, _):
        text = "x" * 1_000_000
        assert (await first.stub.Echo(Request(host=text))).valid_host == text
        assert tokens.refusals == 1


async def test_a_handler_that_has_begun_to_answer_is_not_asked_again(autojump_clock: trio.testing.MockClock):
    ran = []

    async def late(stream: Any) -> None:
        ran.append(await stream.recv_message())
        await stream.send_initial_metadata()
        raise GRPCError(Status.UNAUTHENTICATED, "not for you")

    async with guarded("Bearer 1", Tokens()) as (first, _):
        path = PATH + "Many"
        first.core.router[path] = first.core.router[path]._replace(func=late)
        assert (await refused(first.stub.Many(Request(host="x")))).message == "not for you"
        assert len(ran) == 1


async def test_the_time_limit_holds_for_both_attempts(autojump_clock: trio.testing.MockClock):
    async with guarded("Bearer 2", Tokens(gate=trio.Event())) as (first, _):
        error = await refused(first.stub.Echo(Request(), timeout=5))
        assert error.status is Status.DEADLINE_EXCEEDED
        assert trio.current_time() == pytest.approx(5)
        assert first.connection.streams == {}
