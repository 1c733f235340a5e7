"""Renegotiation over a channel in memory, with peers that only keep what they are asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import cast

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rpc.peers.channel import MessageChannel
from rpc.peers.media.negotiation import BURST, Negotiator
from rpc.peers.memory import memory_channels
from rpc.peers.port import Description, PeerConnection
from rpc.peers.signals import decode_description as decode
from rpc.peers.signals import encode_description as encode
from schema.errors import ErrorKind, MachineError

OFFER, ANSWER = Description("offer", "v=0\r\n"), Description("answer", "v=0\r\ns=é\r\n")


class FakePeer:
    """Accepts everything but `refused`."""

    refused = Description("answer", "refused")

    def __init__(self) -> None:
        self.accepted: list[Description] = []
        self.offers = 0

    async def offer(self) -> Description:
        await trio.lowlevel.checkpoint()
        self.offers += 1
        return Description("offer", f"offer {self.offers}")

    async def answer(self) -> Description:
        await trio.lowlevel.checkpoint()
        return ANSWER

    async def accept(self, description: Description) -> None:
        await trio.lowlevel.checkpoint()
        if description == self.refused:
            raise MachineError("it cannot be used", kind=ErrorKind.INVALID)
        self.accepted.append(description)


@asynccontextmanager
async def negotiator() -> AsyncIterator[tuple[FakePeer, Negotiator, MessageChannel]]:
    """Yield a peer, its negotiator and the other end of the channel."""
    peer = FakePeer()
    async with memory_channels() as (near, far), trio.open_nursery() as nursery:
        negotiator = Negotiator(cast("PeerConnection", peer), near)
        nursery.start_soon(negotiator.run)
        yield peer, negotiator, far
        nursery.cancel_scope.cancel()


async def outcome(of: Negotiator, results: list[MachineError | None]) -> None:
    try:
        await of.offer()
    except MachineError as error:
        results.append(error)
    else:
        results.append(None)


async def test_an_offer_waits_for_its_answer() -> None:
    async with negotiator() as (peer, own, far), trio.open_nursery() as nursery:
        results: list[MachineError | None] = []
        nursery.start_soon(outcome, own, results)
        assert decode(await far.receive()) == Description("offer", "offer 1")
        await wait_all_tasks_blocked()
        assert results == []
        await far.send(encode(ANSWER))
        await wait_all_tasks_blocked()
        assert results == [None]
        assert peer.accepted == [ANSWER]


async def test_offers_take_turns() -> None:
    async with negotiator() as (_, own, far), trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(own.offer)
        for number in range(1, 4):
            assert decode(await far.receive()).sdp == f"offer {number}"
            await wait_all_tasks_blocked()
            await far.send(encode(ANSWER))


async def test_an_offer_of_the_other_end_is_answered() -> None:
    async with negotiator() as (peer, _, far):
        await far.send(encode(OFFER))
        assert decode(await far.receive()) == ANSWER
        assert peer.accepted == [OFFER]


async def test_of_two_offers_at_the_same_time_the_own_one_counts() -> None:
    async with negotiator() as (peer, own, far), trio.open_nursery() as nursery:
        nursery.start_soon(own.offer)
        assert decode(await far.receive()).kind == "offer"
        await far.send(encode(OFFER))
        await far.send(encode(ANSWER))
        await wait_all_tasks_blocked()
        assert peer.accepted == [ANSWER]
        await far.send(encode(OFFER))
        assert decode(await far.receive()) == ANSWER


async def test_an_answer_that_cannot_be_used_fails_its_offer_only() -> None:
    async with negotiator() as (peer, own, far), trio.open_nursery() as nursery:
        results: list[MachineError | None] = []
        for message in (FakePeer.refused, ANSWER):
            nursery.start_soon(outcome, own, results)
            await far.receive()
            await far.send(encode(message))
            await wait_all_tasks_blocked()
        assert [error and error.kind for error in results] == [ErrorKind.INVALID, None]
        assert peer.accepted == [ANSWER]


async def test_an_offer_whose_caller_has_given_up_is_still_completed() -> None:
    async with negotiator() as (peer, own, far), trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(far.receive)
            async with trio.open_nursery() as caller:
                caller.start_soon(own.offer)
                await wait_all_tasks_blocked()
                caller.cancel_scope.cancel()
        assert not scope.cancelled_caught
        results: list[MachineError | None] = []
        nursery.start_soon(outcome, own, results)
        await wait_all_tasks_blocked()
        assert peer.offers == 1
        await far.send(encode(ANSWER))
        assert decode(await far.receive()).sdp == "offer 2"
        await far.send(encode(ANSWER))
        await wait_all_tasks_blocked()
        assert results == [None]


async def test_the_end_of_the_channel_ends_offers() -> None:
    async with negotiator() as (_, own, far), trio.open_nursery() as nursery:
        results: list[MachineError | None] = []
        for _ in range(2):
            nursery.start_soon(outcome, own, results)
        await wait_all_tasks_blocked()
        far.close()
        await wait_all_tasks_blocked()
        await outcome(own, results)
        assert [error and error.kind for error in results] == [ErrorKind.UNAVAILABLE] * 3


async def flood(channel: MessageChannel) -> None:
    for _ in range(2 * BURST):
        await channel.send("junk")
        await wait_all_tasks_blocked()


async def test_useless_messages_are_dropped_and_too_many_end_the_channel(autojump_clock: MockClock) -> None:
    async with negotiator() as (peer, _, far):
        for message in ("junk", encode(ANSWER), encode(FakePeer.refused)):
            await far.send(message)
        await far.send(encode(OFFER))
        assert decode(await far.receive()) == ANSWER
        with pytest.raises(trio.BrokenResourceError):
            await flood(far)
        assert peer.accepted == [OFFER]


async def test_a_cancelled_negotiator_closes_its_channel() -> None:
    async with memory_channels() as (near, far):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Negotiator(cast("PeerConnection", FakePeer()), near).run)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        with pytest.raises(trio.EndOfChannel):
            await far.receive()
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BrokenResourceError):
            await partial(near.send, "late")()
