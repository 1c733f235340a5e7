"""Scenes for test_conformance.py: the contract of rpc/peers/port.py between two engines, see `pairs.NAMES`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable
from functools import partial

import psutil
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from rpc.peers.port import Description, IceCandidate, PeerChannel, PeerOptions, PeerState
from schema.errors import ErrorKind, MachineError
from tests.netns.peers.pairs import NAMES, End, connected, engines, interface, join, new_end, scene
from tests.netns.peers.remote import RemotePeer
from tests.unit.rpc.peers.contract import CONTRACT, raises

__all__ = ["interface"]
Check = Callable[[PeerChannel, PeerChannel], Awaitable[None]]


async def offer_to_closed(end: End) -> None:
    with pytest.raises(MachineError) as caught:
        await end.peer.offer()
    assert caught.value.kind is ErrorKind.UNAVAILABLE


@scene
async def test_both_ends_become_connected() -> None:
    async with connected() as ends:
        for end in ends:
            assert await end.peer.wait_state(PeerState.CONNECTED) is PeerState.CONNECTED
            assert (end.data.label, end.control.label) == ("data", "negotiation")


@pytest.mark.parametrize("check", CONTRACT)
@pytest.mark.parametrize("turned", [False, True])
@scene
async def test_contract(check: Check, turned: bool) -> None:
    """The same for channels in memory is in tests/unit/rpc/peers; here, the other channel still works afterwards."""
    async with connected() as ends:
        source, target = reversed(ends) if turned else ends
        await check(source.data, target.data)
        await source.control.send("still open")
        assert await target.control.receive() == "still open"


@scene
async def test_channels_are_independent() -> None:
    async with connected() as (source, target):
        await source.control.send("control")
        await source.data.send("data")
        assert await target.data.receive() == "data"
        assert await target.control.receive() == "control"


@scene
async def test_a_connection_closed_at_either_end_ends_calls_at_both() -> None:
    for closing in (0, 1):
        async with connected() as ends:
            async with trio.open_nursery() as nursery:
                for end in ends:
                    nursery.start_soon(raises, trio.EndOfChannel, end.data.receive)
                    nursery.start_soon(end.peer.wait_state, PeerState.CLOSED)
                await wait_all_tasks_blocked()
                ends[closing].peer.close()
                ends[closing].peer.close()
            for end in ends:
                assert end.peer.state is PeerState.CLOSED
                await raises(trio.BrokenResourceError, partial(end.peer.wait_state, PeerState.CONNECTED))
                await raises(MachineError, end.peer.offer)
                await raises(MachineError, end.peer.report)
                await raises(MachineError, partial(end.peer.add_candidate, IceCandidate("")))
                with pytest.raises(MachineError):
                    end.peer.channel("third", 2)
                assert await end.peer.next_candidate() is None


@scene
async def test_a_connection_closed_during_an_offer_ends_it() -> None:
    for name in set(NAMES):
        async with engines(name) as (engine,):
            end = new_end(engine)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(offer_to_closed, end)
                for _ in range(2):
                    await trio.lowlevel.checkpoint()
                end.peer.close()


async def sockets_are_closed(before: int) -> None:
    process = psutil.Process()
    while process.num_fds() > before:  # noqa: ASYNC110 - no event says that they are closed
        await trio.sleep(0.01)


async def offer_and_ignore(end: End) -> None:
    with contextlib.suppress(MachineError):
        await end.peer.offer()


@scene
async def test_the_end_of_the_engine_ends_its_connections() -> None:
    async with engines(*NAMES) as (first, second):
        ends = new_end(first), new_end(second)
        await join(*ends)
    for end in ends:
        assert end.peer.state is PeerState.CLOSED
        await raises(trio.EndOfChannel, end.data.receive)


@scene
async def test_a_cancelled_engine_closes_its_connections() -> None:
    with trio.CancelScope() as scope:
        async with engines(*NAMES) as (first, second):
            ends = new_end(first), new_end(second)
            await join(*ends)
            scope.cancel()
            await trio.sleep_forever()
    assert [end.peer.state for end in ends] == [PeerState.CLOSED] * 2


@scene
async def test_the_report_names_the_path() -> None:
    async with connected() as (source, target):
        await source.data.send(bytes(10_000))
        await target.data.receive()
        report = await source.peer.report()
        assert report.local in ("host", "prflx")
        assert (report.protocol, report.remote_address) == ("udp", "10.77.0.1")
        assert report.bytes_sent > 10_000


@scene
async def test_a_connection_without_a_path_reports_nothing() -> None:
    for name in set(NAMES):
        async with engines(name) as (engine,):
            assert (await new_end(engine).peer.report()).local is None


@scene
async def test_candidates_with_names_are_ignored() -> None:
    async with connected() as ends:
        for end in ends:
            for host in ("7f1c0b7e-6a35-4b8e-9a0d-5b1f6d1e8a11.local", "tracker.example.com"):
                await end.peer.add_candidate(
                    IceCandidate(f"candidate:1 1 udp 2113937151 {host} 50000 typ host", "0", 0)
                )


@scene
async def test_calls_in_the_wrong_order_fail() -> None:
    for name in set(NAMES):
        async with engines(name) as (engine,):
            offer = await new_end(engine).peer.offer()
            with pytest.raises(MachineError) as caught:
                await new_end(engine).peer.answer()
            assert caught.value.kind is ErrorKind.PRECONDITION
            with pytest.raises(MachineError) as caught:
                await new_end(engine).peer.accept(Description("answer", offer.sdp))
            assert caught.value.kind is ErrorKind.INVALID


@scene
async def test_servers_that_are_not_valid_are_refused_without_quoting_them() -> None:
    from rpc.peers.port import IceServer

    for name in set(NAMES):
        async with engines(name) as (engine,):
            for url in ("http://secret", "stun:", "turn:host:99999999", "stun:host:x", ""):
                with pytest.raises(MachineError) as caught:
                    engine.connect(PeerOptions((IceServer((url,), "user", "secret"),)))
                assert "secret" not in str(caught.value)


@scene
async def test_a_killed_peer_is_noticed() -> None:
    async with engines(NAMES[0]) as (engine,):
        end = new_end(engine)
        remote = RemotePeer(NAMES[1])
        try:
            await remote.join(end)
            await end.data.send("hello")
            assert await end.data.receive() == "hello"
            killed = time.monotonic()
            remote.kill()
            await end.peer.wait_state(PeerState.DISCONNECTED, PeerState.FAILED, PeerState.CLOSED)
            assert time.monotonic() - killed < 15
        finally:
            remote.kill()
