"""Scenes for test_conformance.py: gRPC calls over the data channel between two engines, see `pairs.NAMES`."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request

from rpc.call import ServerCore
from rpc.carrier import Identity, Peer
from rpc.datachannel.client import CallChannel
from rpc.datachannel.server import serve_channel
from rpc.peers.dial import until_lost
from tests.netns.peers.pairs import End, connected, interface, scene
from tests.unit.rpc.echo import EchoService, Stub

__all__ = ["interface"]
LARGE = 300_000  # bytes; aiortc loses datagrams when it sends much, and then waits for seconds


@asynccontextmanager
async def calls() -> AsyncIterator[tuple[Stub, EchoService, ServerCore, tuple[End, End]]]:
    """Yield a stub at the end that made the offer, and the service, server and ends."""
    async with connected() as ends, trio.open_nursery() as nursery:
        service = EchoService()
        core = ServerCore(service.__mapping__())
        serve = partial(serve_channel, ends[1].data, core, peer=Peer(("10.77.0.1", 1)), identity=Identity("caller"))
        nursery.start_soon(serve)
        for end in ends:
            nursery.start_soon(close_when_lost, end)
        async with CallChannel(ends[0].data) as channel:
            yield Stub(channel), service, core, ends
        nursery.cancel_scope.cancel()


async def close_when_lost(end: End) -> None:
    """Close an end whose other end has vanished: the datagram that says so may be lost."""
    await until_lost(end.peer, recovery=0)
    end.peer.close()


async def refused(awaitable: Any) -> Status:
    with pytest.raises(GRPCError) as caught:
        await awaitable
    return caught.value.status


@scene
async def test_all_kinds_of_calls() -> None:
    async with calls() as (stub, service, core, _):
        assert (await stub.Echo(Request(host="hello"), metadata={"word": "value"})).valid_host == "hello"
        assert (service.seen[0].identity.entity, dict(service.seen[0].metadata)) == ("caller", {"word": "value"})
        assert [len(reply.valid_host) for reply in await stub.Many(Request(host="40,50000"))] == [50_000] * 40
        assert (await stub.Collect([Request(host="x" * 70_000)] * 20)).valid_host == "1400000"
        assert (await stub.Collect([])).valid_host == "0"
        texts = [str(number) for number in range(40)]
        assert [reply.valid_host for reply in await stub.Bidi([Request(host=text) for text in texts])] == texts
        assert (await stub.Echo(Request(host="x" * LARGE))).valid_host == "x" * LARGE
        assert await refused(stub.Missing(Request())) is Status.UNIMPLEMENTED
        assert await refused(stub.Fail(Request(host="grpc"))) is Status.NOT_FOUND
        assert await refused(stub.Hang(Request(), timeout=0.5)) is Status.DEADLINE_EXCEEDED
        await service.cancelled.wait()
        assert core.statistics.refusals == {}


async def read_on(stub: Stub, reading: trio.Event) -> None:
    """Read large replies without end; `reading` is set after the first one."""
    async with stub.Many.open() as call:
        await call.send_message(Request(host=f"1000,{LARGE}"), end=True)
        async for _ in call:
            reading.set()


@scene
async def test_small_calls_pass_large_ones() -> None:
    async with calls() as (stub, _, _, _), trio.open_nursery() as nursery:
        begun = [trio.Event() for _ in range(2)]
        for event in begun:
            nursery.start_soon(read_on, stub, event)
        for event in begun:
            await event.wait()
        for number in range(2):
            assert (await stub.Echo(Request(host=str(number)))).valid_host == str(number)
        nursery.cancel_scope.cancel()


@scene
async def test_a_connection_that_ends_under_replies_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    async def call(stub: Stub, event: trio.Event) -> None:
        assert await refused(read_on(stub, event)) is Status.UNAVAILABLE

    for closing in (0, 1):
        async with calls() as (stub, _, core, ends), trio.open_nursery() as nursery:
            begun = [trio.Event() for _ in range(2)]
            for event in begun:
                nursery.start_soon(call, stub, event)
            for event in begun:
                await event.wait()
            ends[closing].peer.close()
            while core.statistics.open_connections:
                await core._changed.next.wait()
            assert core.statistics.cancelled_calls == 2
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
