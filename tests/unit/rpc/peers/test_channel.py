"""Waiting, back-pressure and end of a data channel, above a native end that the test moves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from rpc.peers.channel import MESSAGE_COST, MessageChannel
from rpc.peers.port import HIGH_WATER, MAX_MESSAGE, MAX_UNREAD


class FakeLink:
    """Native end that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes | str] = []
        self.buffered = 0
        self.is_shut = False
        self.refuses = False

    def transmit(self, data: bytes | str) -> None:
        if self.refuses:
            raise RuntimeError("full")
        self.sent.append(data)
        self.buffered += len(data)

    def shut(self) -> None:
        self.is_shut = True


def channel_of(link: FakeLink, *, is_open: bool = True) -> MessageChannel:
    channel = MessageChannel("data", link)
    if is_open:
        channel.opened()
    return channel


async def raises(error: type[Exception], call: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(error):
        await call()


async def test_send_waits_until_the_channel_is_open() -> None:
    link = FakeLink()
    channel = channel_of(link, is_open=False)
    channel.send_nowait("ignored")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.send, "first")
        nursery.start_soon(channel.wait_open)
        await wait_all_tasks_blocked()
        assert link.sent == []
        channel.opened()
    assert link.sent == ["first"]


async def test_send_waits_while_more_than_the_high_water_mark_is_buffered() -> None:
    link = FakeLink()
    channel = channel_of(link)
    link.buffered = HIGH_WATER + 1
    async with trio.open_nursery() as nursery:
        for text in ("first", "second", "third"):
            nursery.start_soon(channel.send, text)
            await wait_all_tasks_blocked()
        channel.send_nowait("now")
        channel.drained()
        await wait_all_tasks_blocked()
        assert link.sent == ["now"]
        link.buffered = HIGH_WATER
        channel.drained()
        await wait_all_tasks_blocked()
        assert link.sent == ["now", "first"]
        link.buffered = 0
        channel.drained()
    assert link.sent == ["now", "first", "second", "third"]


async def test_cancelled_senders_send_nothing() -> None:
    link = FakeLink()
    channel = channel_of(link)
    link.buffered = HIGH_WATER + 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.send, "first")
        nursery.start_soon(channel.send, "second")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    link.buffered = 0
    channel.drained()
    await channel.send("third")
    assert link.sent == ["third"]


async def test_large_messages_are_refused() -> None:
    link = FakeLink()
    channel = channel_of(link)
    for data in (bytes(MAX_MESSAGE + 1), "é" * (MAX_MESSAGE // 2 + 1)):
        await raises(ValueError, partial(channel.send, data))
        with pytest.raises(ValueError):
            channel.send_nowait(data)
    await channel.send(bytes(MAX_MESSAGE))
    assert len(link.sent) == 1


@pytest.mark.parametrize("local", [True, False])
async def test_the_end_of_a_channel_wakes_up_all_calls(local: bool) -> None:
    link = FakeLink()
    channel = channel_of(link)
    waiting = channel_of(FakeLink(), is_open=False)
    link.buffered = HIGH_WATER + 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(raises, trio.BrokenResourceError, partial(channel.send, "first"))
        nursery.start_soon(raises, trio.BrokenResourceError, partial(channel.send, "second"))
        nursery.start_soon(raises, trio.EndOfChannel, channel.receive)
        nursery.start_soon(raises, trio.BrokenResourceError, waiting.wait_open)
        await wait_all_tasks_blocked()
        for each in (channel, waiting):
            (each.close if local else each.ended)()
    assert link.is_shut is local
    channel.opened()
    channel.send_nowait("late")
    assert link.sent == []
    assert channel.buffered == 0


async def test_messages_that_arrived_before_the_end_are_received() -> None:
    channel = channel_of(FakeLink())
    for data in ("first", b"", ""):
        channel.arrived(data)
    channel.ended()
    channel.arrived("late")
    assert [await channel.receive() for _ in range(3)] == ["first", b"", ""]
    await raises(trio.EndOfChannel, channel.receive)


async def test_a_local_close_drops_unread_messages() -> None:
    channel = channel_of(FakeLink())
    channel.arrived("unread")
    channel.close()
    await raises(trio.EndOfChannel, channel.receive)


@pytest.mark.parametrize("size", [0, 1_000, MAX_MESSAGE])
async def test_too_many_unread_messages_end_the_channel(size: int) -> None:
    link = FakeLink()
    channel = channel_of(link)
    count = MAX_UNREAD // (size + MESSAGE_COST)
    for _ in range(count):
        channel.arrived(bytes(size))
    await channel.receive()
    channel.arrived(bytes(size))
    assert not link.is_shut
    channel.arrived(bytes(size))
    assert link.is_shut
    await raises(trio.EndOfChannel, channel.receive)


async def test_a_refusal_of_the_engine_ends_the_channel() -> None:
    link = FakeLink()
    channel = channel_of(link)
    link.refuses = True
    await raises(trio.BrokenResourceError, partial(channel.send, "first"))
    assert link.is_shut
    channel.send_nowait("second")


async def test_a_second_receiver_is_refused() -> None:
    channel = channel_of(FakeLink())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.receive)
        await wait_all_tasks_blocked()
        await raises(trio.BusyResourceError, channel.receive)
        channel.arrived("first")
