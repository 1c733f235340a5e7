"""Scenes for test_conformance.py: the contract of rpc/peers/port.py between two engines, see `pairs.NAMES`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from rpc.peers.port import HIGH_WATER, MAX_MESSAGE, MAX_UNREAD, Candidate, Channel, Description, PeerOptions, PeerState
from schema.errors import ErrorKind, MachineError
from tests.netns.peers.pairs import NAMES, End, connected, engines, interface, join, new_end, scene
from tests.netns.peers.remote import RemotePeer

__all__ = ["interface"]
MESSAGES = [
    *(bytes(size) for size in (0, 1, 2, 1_199, 1_200, 16_384, 65_534, MAX_MESSAGE)),
    *("é" * (size // 2) for size in (0, 2, 1_200, MAX_MESSAGE - 1)),
    "a",
    b"",
    "",
    "\0",
    b"\xff\xfe",
]


async def fill(channel: Channel) -> None:
    """Queue messages until `send` would wait for a while."""
    while channel.buffered <= 4 * HIGH_WATER:
        channel.send_nowait(bytes(MAX_MESSAGE))


async def raises(error: type[Exception], call: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(error):
        await call()


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


@scene
async def test_messages_of_all_sizes_and_both_kinds_arrive_in_order() -> None:
    async with connected() as ends:
        for source, target in (ends, ends[::-1]):
            for message in MESSAGES:
                await source.data.send(message)
            assert [await target.data.receive() for _ in MESSAGES] == MESSAGES


@scene
async def test_channels_are_independent() -> None:
    async with connected() as (source, target):
        await source.control.send("control")
        await source.data.send("data")
        assert await target.data.receive() == "data"
        assert await target.control.receive() == "control"


@scene
async def test_messages_cross_in_both_directions_at_once() -> None:
    async def pour(channel: Channel) -> None:
        for number in range(100):
            await channel.send(number.to_bytes(4, "big") + bytes(20_000))

    async def check(channel: Channel) -> None:
        for number in range(100):
            data = await channel.receive()
            assert isinstance(data, bytes)
            assert int.from_bytes(data[:4], "big") == number

    async with connected() as ends, trio.open_nursery() as nursery:
        for end in ends:
            nursery.start_soon(pour, end.data)
            nursery.start_soon(check, end.data)


@scene
async def test_larger_messages_are_refused() -> None:
    async with connected() as (source, target):
        for message in (bytes(MAX_MESSAGE + 1), "é" * (MAX_MESSAGE // 2 + 1)):
            await raises(ValueError, partial(source.data.send, message))
            with pytest.raises(ValueError):
                source.data.send_nowait(message)
        await source.data.send("next")
        assert await target.data.receive() == "next"


@scene
async def test_send_waits_while_too_much_is_buffered_and_cancelled_sends_nothing() -> None:
    async with connected() as (source, target):
        await fill(source.data)
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(source.data.send, "cancelled")
                await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
        assert not scope.cancelled_caught
        await source.data.send("last")
        assert source.data.buffered <= HIGH_WATER + MAX_MESSAGE
        while (data := await target.data.receive()) != "last":
            assert data == bytes(MAX_MESSAGE)


@scene
async def test_a_sender_ends_when_its_channel_is_closed() -> None:
    async with connected() as (source, _target):
        await fill(source.data)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(raises, trio.BrokenResourceError, partial(source.data.send, "late"))
            await trio.lowlevel.checkpoint()
            source.data.close()
        await raises(trio.BrokenResourceError, partial(source.data.send, "later"))
        source.data.send_nowait("ignored")
        assert source.data.buffered == 0


@scene
async def test_a_channel_closed_at_either_end_ends_at_both() -> None:
    for closing in (0, 1):
        async with connected() as ends:
            closed, other = ends[closing], ends[1 - closing]
            await closed.data.send("before the end")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(raises, trio.EndOfChannel, closed.data.receive)
                await trio.lowlevel.checkpoint()
                closed.data.close()
            assert await other.data.receive() == "before the end"
            await raises(trio.EndOfChannel, other.data.receive)
            await raises(trio.BrokenResourceError, partial(other.data.send, "late"))
            await other.control.send("still open")
            assert await closed.control.receive() == "still open"


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
                await raises(MachineError, partial(end.peer.add_candidate, Candidate("")))
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
async def test_a_channel_that_is_not_read_ends() -> None:
    async with connected() as (source, target):

        async def flood() -> None:
            nonlocal sent
            while True:
                await source.data.send(bytes(MAX_MESSAGE))
                await target.data.wait_open()  # fails after the end
                sent += MAX_MESSAGE

        sent = 0
        await raises(trio.BrokenResourceError, flood)
        assert sent > MAX_UNREAD
        await raises(trio.EndOfChannel, target.data.receive)
        await source.control.send("still open")
        assert await target.control.receive() == "still open"


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
                await end.peer.add_candidate(Candidate(f"candidate:1 1 udp 2113937151 {host} 50000 typ host", "0", 0))


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
