"""Unauthenticated connections are closed in time and leave room for authenticated ones."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import trio
import trio.testing
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request

from rpc.access.admission import Admission, ConnectionPlace
from rpc.access.credential_types import AUTHENTICATE
from rpc.access.forwarded import Proxies, parse_network
from rpc.call import ServerCore
from rpc.carrier import Identity, Peer
from rpc.client.channel import Channel
from rpc.http2.codec import frames
from rpc.limits import Limits
from rpc.server.port import serve
from rpc.statistics import Statistics
from tests.unit.rpc.echo import PATH, EchoService, Stub
from tests.unit.rpc.server.test_port import MemoryListener

KEY = {"authorization": "Bearer right"}


def authorize(method: str, metadata: Mapping[str, str | bytes]) -> Identity | None:
    if method == AUTHENTICATE or method == PATH + "Collect":
        return None
    if metadata.get("authorization") != "Bearer right":
        raise GRPCError(Status.UNAUTHENTICATED, "no key")
    return Identity("me")


def keyed_core(places: int, **more: float) -> ServerCore:
    limits = Limits(max_connections=places, **more)  # type: ignore[arg-type]
    return ServerCore(EchoService().__mapping__(), authorize=authorize, keyed=lambda: True, limits=limits)


async def silent(listener: MemoryListener) -> trio.abc.Stream:
    """Connect, send the HTTP/2 preface and make no call."""
    stream = await listener.connect()
    await stream.send_all(frames.PREFACE + frames.settings(()))
    return stream


async def drained(stream: trio.abc.ReceiveStream) -> bytes:
    received = b""
    try:
        while more := await stream.receive_some():
            received += bytes(more)
    except trio.BrokenResourceError:
        pass
    return received


async def test_clients_with_a_key_get_in_and_stay_despite_any_number_without(
    autojump_clock: trio.testing.MockClock,
) -> None:
    listener, core = MemoryListener(), keyed_core(20)
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, [listener], core)
        async with Channel("x:1", connect=listener.connect) as early, Channel("x:1", connect=listener.connect) as late:
            assert (await Stub(early).Echo(Request(host="a"), metadata=KEY)).valid_host == "a"
            hostile = [await silent(listener) for _ in range(50)]
            assert (await Stub(early).Echo(Request(host="b"), metadata=KEY)).valid_host == "b"
            assert (await Stub(late).Echo(Request(host="c"), metadata=KEY)).valid_host == "c"
            await trio.testing.wait_all_tasks_blocked()
            assert core.statistics.open_connections <= 12
            assert core.statistics.refusals["connections"] >= 40
        for stream in hostile:
            await stream.aclose()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("keyed", [True, False])
async def test_a_connection_without_a_call_ends(autojump_clock: trio.testing.MockClock, keyed: bool) -> None:
    listener, core = MemoryListener(), keyed_core(20)
    if not keyed:
        core.authorize, core.keyed = None, lambda: False
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, [listener], core)
        stream, begun = await silent(listener), trio.current_time()
        assert b"authentication timeout" in await drained(stream)
        assert trio.current_time() - begun == pytest.approx(60)
        async with Channel("x:1", connect=listener.connect) as channel:
            await Stub(channel).Echo(Request(host="a"), metadata=KEY)
            await trio.sleep(600)
            assert core.statistics.open_connections == 1
        nursery.cancel_scope.cancel()
    assert core.statistics.refusals["authentication timeout"] == 1


async def test_a_call_that_needs_no_key_shows_none(autojump_clock: trio.testing.MockClock) -> None:
    listener, core = MemoryListener(), keyed_core(20)
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, [listener], core)
        async with Channel("x:1", connect=listener.connect) as channel:
            async with Stub(channel).Collect.open() as call:
                await call.send_message(Request(host="a"))
                begun = trio.current_time()
                with pytest.raises(GRPCError):
                    await call.recv_message()
                assert trio.current_time() - begun == pytest.approx(60)
                await call.cancel()
        nursery.cancel_scope.cancel()


class Places:
    """Wrap an admission and keep the tickets it issued."""

    def __init__(self, places: int, share: int = 200, proxies: Proxies | None = None, *, keyed: bool = True) -> None:
        self.evicted: list[ConnectionPlace] = []
        self.admission = Admission(places, share, lambda: keyed, proxies or Proxies(), Statistics())

    async def enter(self, address: str) -> ConnectionPlace | None:
        ticket = await self.admission.enter(Peer((address, 1)))
        if ticket is not None:
            ticket.abort = lambda: (self.evicted.append(ticket), self.admission.leave(ticket))  # type: ignore[assignment]
        return ticket


async def test_each_address_has_a_share_and_the_oldest_stranger_goes() -> None:
    places = Places(100, 3)
    tickets = [await places.enter("10.0.0.1") for _ in range(5)]
    other = await places.enter("10.0.0.2")
    assert places.evicted == tickets[:2]
    assert other is not None
    assert places.admission.strangers == 4


async def test_known_connections_do_not_count_to_the_share() -> None:
    places = Places(100, 3)
    for _ in range(90):
        ticket = await places.enter("127.0.0.1")
        assert ticket is not None
        ticket.recognize(key=True)
    assert not places.evicted
    assert (places.admission.open, places.admission.strangers) == (90, 0)


async def test_strangers_have_half_and_the_largest_group_gives_way() -> None:
    places = Places(20)
    for index in range(10):
        await places.enter(f"10.0.{index % 2 * index}.1")
    last = await places.enter("10.9.9.9")
    assert [ticket.group for ticket in places.evicted] == ["10.0.0.1"]
    assert last is not None


async def test_a_port_full_of_known_connections_refuses() -> None:
    places = Places(4)
    for _ in range(4):
        ticket = await places.enter("10.0.0.1")
        assert ticket is not None
        ticket.recognize(key=True)
    assert await places.enter("10.0.0.2") is None
    assert not places.evicted


async def test_without_keys_an_address_gets_no_more_than_its_share() -> None:
    places = Places(100, 3, keyed=False)
    tickets = [await places.enter("10.0.0.1") for _ in range(4)]
    assert tickets[3] is None
    assert await places.enter("10.0.0.2") is not None
    assert not places.evicted


async def test_behind_a_proxy_the_client_that_it_names_counts() -> None:
    places = Places(100, 3, Proxies((parse_network("10.0.0.0/24"),)))
    tickets = [await places.enter("10.0.0.7") for _ in range(20)]
    assert not places.evicted
    for ticket in tickets[:5]:
        assert ticket is not None
        ticket.count_for_client([("x-forwarded-for", "192.0.2.1")])
    assert places.evicted == tickets[:2]
    assert places.admission.open == 18
