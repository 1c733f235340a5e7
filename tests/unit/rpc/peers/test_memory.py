"""Channels in memory keep the contract of those of the engines; a slow one takes the time that its rate needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from rpc.peers.memory import memory_channels
from rpc.peers.port import PeerChannel
from tests.unit.rpc.peers.contract import CONTRACT, raises


@pytest.mark.parametrize("check", CONTRACT)
@pytest.mark.parametrize("turned", [False, True])
async def test_contract(check: Callable[[PeerChannel, PeerChannel], Awaitable[None]], turned: bool) -> None:
    async with memory_channels() as ends:
        await check(*(reversed(ends) if turned else ends))


async def test_a_slow_channel(autojump_clock: trio.testing.MockClock) -> None:
    async with memory_channels(rate=1_000) as (near, far):
        for _ in range(3):
            await near.send(bytes(500))
        assert near.buffered == 1_500
        assert [len(await far.receive()) for _ in range(3)] == [500] * 3
        assert trio.current_time() == pytest.approx(1.5)
        assert near.buffered == 0


async def test_the_end_of_the_block_ends_the_channels() -> None:
    async with memory_channels() as ends:
        pass
    for end in ends:
        await raises(trio.EndOfChannel, end.receive)
