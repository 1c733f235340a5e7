"""Requests that go to another router than that of the server, and connections with an established caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from trio.testing import memory_stream_pair

from rpc.call import Route, ServerCore
from rpc.carrier import Identity, Peer
from rpc.client.channel import Channel
from rpc.http2.server import serve_http2
from tests.unit.rpc.echo import EchoService, Stub, rig, web_rig
from tests.unit.rpc.test_calls import refused

OpenRig = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.mark.parametrize("open_rig", [rig, web_rig], ids=["HTTP/2", "gRPC-Web"])
async def test_a_route_by_authority_or_metadata(open_rig: OpenRig, autojump_clock: trio.testing.MockClock) -> None:
    seen: list[str] = []
    other = EchoService()
    other.echo = other.collect  # type: ignore[method-assign]  # answers with the size

    def route(fields: Mapping[str, str]) -> Route | None:
        seen.append(fields[":authority"].partition(":")[0])
        return Route(other.__mapping__(), 1000) if "elsewhere" in fields else None

    async with open_rig(route=route) as first:
        assert (await first.stub.Echo(Request(host="abc"))).valid_host == "abc"
        moved = {"elsewhere": "1"}
        assert (await first.stub.Echo(Request(host="abc"), metadata=moved)).valid_host == "3"
        error = await refused(first.stub.Echo(Request(host="x" * 2000), metadata=moved))
        assert error.status is Status.RESOURCE_EXHAUSTED
        assert seen == ["machine"] * 3


async def test_the_caller_of_a_connection(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    def refuse(method: str, metadata: object) -> Identity | None:
        raise GRPCError(Status.UNAUTHENTICATED, "no")

    service = EchoService()
    core = ServerCore(service.__mapping__(), authorize=refuse)
    identity, peer = Identity("key"), Peer(("cloud",))

    async def connect() -> trio.abc.Stream:
        client, server = memory_stream_pair()
        nursery.start_soon(lambda: serve_http2(server, core, peer=peer, identity=identity))
        return client

    async with Channel("machine:1", connect=connect, headers=(("fixed", "1"),)) as channel:
        await Stub(channel).Echo(Request(host="x"), metadata={"authorization": "Bearer forged"})
    call = service.seen[0]
    assert (call.identity, call.peer, call.peer.local) == (identity, peer, False)
    assert call.metadata["fixed"] == "1"
    assert peer.farewell.said
