"""What every pair of channels does, for `test_memory.py` and, with the engines, for `tests/netns/peers`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio

from rpc.peers.port import HIGH_WATER, MAX_MESSAGE, MAX_UNREAD, PeerChannel

MESSAGES = [
    *(bytes(size) for size in (0, 1, 2, 1_199, 1_200, 16_384, 65_534, MAX_MESSAGE)),
    *("é" * (size // 2) for size in (0, 2, 1_200, MAX_MESSAGE - 1)),
    "a",
    b"",
    "",
    "\0",
    b"\xff\xfe",
]


async def raises(error: type[Exception], call: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(error):
        await call()


async def fill(channel: PeerChannel) -> None:
    """Queue messages until `send` would wait for a while."""
    while channel.buffered <= 4 * HIGH_WATER:
        channel.send_nowait(bytes(MAX_MESSAGE))


async def messages_of_all_sizes_and_both_kinds_arrive_in_order(first: PeerChannel, second: PeerChannel) -> None:
    for source, target in ((first, second), (second, first)):
        for message in MESSAGES:
            await source.send(message)
        assert [await target.receive() for _ in MESSAGES] == MESSAGES


async def messages_cross_in_both_directions_at_once(first: PeerChannel, second: PeerChannel) -> None:
    async def pour(channel: PeerChannel) -> None:
        for number in range(100):
            await channel.send(number.to_bytes(4, "big") + bytes(20_000))

    async def check(channel: PeerChannel) -> None:
        for number in range(100):
            data = await channel.receive()
            assert isinstance(data, bytes)
            assert int.from_bytes(data[:4], "big") == number

    async with trio.open_nursery() as nursery:
        for end in (first, second):
            nursery.start_soon(pour, end)
            nursery.start_soon(check, end)


async def larger_messages_are_refused(source: PeerChannel, target: PeerChannel) -> None:
    for message in (bytes(MAX_MESSAGE + 1), "é" * (MAX_MESSAGE // 2 + 1)):
        await raises(ValueError, partial(source.send, message))
        with pytest.raises(ValueError):
            source.send_nowait(message)
    await source.send("next")
    assert await target.receive() == "next"


async def send_waits_while_too_much_is_buffered_and_cancelled_sends_nothing(
    source: PeerChannel, target: PeerChannel
) -> None:
    await fill(source)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(source.send, "cancelled")
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert not scope.cancelled_caught
    await source.send("last")
    assert source.buffered <= HIGH_WATER + MAX_MESSAGE
    while (data := await target.receive()) != "last":
        assert data == bytes(MAX_MESSAGE)


async def a_task_waits_for_room(source: PeerChannel, target: PeerChannel) -> None:
    await source.wait_room()
    await fill(source)
    await source.wait_room(2 * HIGH_WATER)
    assert source.buffered <= 2 * HIGH_WATER
    await source.wait_room()
    assert source.buffered <= HIGH_WATER
    await fill(source)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(source.wait_room)
        await trio.lowlevel.checkpoint()
        source.close()


async def a_sender_ends_when_its_channel_is_closed(source: PeerChannel, _target: PeerChannel) -> None:
    await fill(source)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(raises, trio.BrokenResourceError, partial(source.send, "late"))
        await trio.lowlevel.checkpoint()
        source.close()
    await raises(trio.BrokenResourceError, partial(source.send, "later"))
    source.send_nowait("ignored")
    assert source.buffered == 0


async def a_channel_closed_at_one_end_ends_at_both(closed: PeerChannel, other: PeerChannel) -> None:
    await closed.send("before the end")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(raises, trio.EndOfChannel, closed.receive)
        await trio.lowlevel.checkpoint()
        closed.close()
    assert await other.receive() == "before the end"
    await raises(trio.EndOfChannel, other.receive)
    await raises(trio.BrokenResourceError, partial(other.send, "late"))


async def a_channel_that_is_not_read_ends(source: PeerChannel, target: PeerChannel) -> None:
    async def flood() -> None:
        nonlocal sent
        while True:
            await source.send(bytes(MAX_MESSAGE))
            await target.wait_open()  # fails after the end
            sent += MAX_MESSAGE

    sent = 0
    await raises(trio.BrokenResourceError, flood)
    assert sent > MAX_UNREAD - HIGH_WATER
    await raises(trio.EndOfChannel, target.receive)


CONTRACT = [
    messages_of_all_sizes_and_both_kinds_arrive_in_order,
    messages_cross_in_both_directions_at_once,
    larger_messages_are_refused,
    send_waits_while_too_much_is_buffered_and_cancelled_sends_nothing,
    a_task_waits_for_room,
    a_sender_ends_when_its_channel_is_closed,
    a_channel_closed_at_one_end_ends_at_both,
    a_channel_that_is_not_read_ends,
]
