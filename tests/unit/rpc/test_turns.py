"""Turns of connections: the one that has had the fewest goes next, and each pass of the loop begins one call."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from rpc.call import ServerCore
from rpc.http2.codec import frames
from rpc.http2.codec.frame_reader import FrameReader
from rpc.http2.server import serve_http2
from rpc.turns import INTERACTIVE, MOST_CALLS, SHORT, SINGLES, Flow, Turns
from tests.unit.rpc.echo import EchoService
from tests.unit.rpc.h2_peer import H2Client
from tests.unit.rpc.http2.test_against_h2 import message, request
from tests.unit.rpc.http2.test_frame_reader import LIMITS, Recorder

HOG = 100  # requests of a client that does not wait for answers


async def test_a_rare_caller_does_not_wait_behind_a_busy_one() -> None:
    turns, order = Turns(), []

    async def user(name: str, flow: Flow, times: int) -> None:
        for _ in range(times):
            await turns.begin(flow)
            order.append(name)
            await turns.end()

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(user, f"hog {number}", Flow(), 20)
        for _ in range(60):
            await trio.lowlevel.checkpoint()
        before = len(order)
        nursery.start_soon(user, "guest", Flow(), 1)
    assert 20 < before < 70
    assert order.index("guest") - before <= 2
    assert len(order) == 101
    assert {order[start : start + 5].count("hog 0") for start in range(0, before - 5, 5)} == {1}


async def test_a_cancelled_waiter_is_forgotten() -> None:
    turns = Turns()
    await turns.begin(Flow())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.begin, Flow())
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    await turns.end()
    with trio.fail_after(30):
        await turns.begin(Flow())


async def test_a_turn_that_is_cancelled_goes_on_to_the_next() -> None:
    turns, had = Turns(), []

    async def user() -> None:
        await turns.begin(Flow())
        had.append(True)
        await turns.end()

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            await turns.begin(Flow())
            nursery.start_soon(user)
            await wait_all_tasks_blocked()
            scope.cancel()
            await turns.end()
        assert scope.cancelled_caught
    assert had == [True]


def test_short_turns_start_more_calls_and_a_long_turn_starts_at_one_again() -> None:
    turns, flow = Turns(), Flow()

    def turn(seconds: float, *, full: bool) -> int:
        turns.measured(flow, 0, seconds, calls=flow.calls, full=full, single=False)
        return turns.calls(flow, 0)

    assert turns.calls(flow, 0) == 1
    assert turn(SHORT / 4, full=False) == 1  # all its calls have begun
    assert [turn(SHORT / 4, full=True) for _ in range(5)] == [2, 4, 8, MOST_CALLS, MOST_CALLS]
    assert turn(SHORT * 0.75, full=True) == MOST_CALLS
    assert turn(SHORT * 1.01, full=True) == 1


def test_single_calls_of_another_connection_end_turns_with_several() -> None:
    turns, hog, guest = Turns(), Flow(), Flow()
    hog.calls = MOST_CALLS
    for number in range(SINGLES):
        assert turns.calls(hog, 10) == MOST_CALLS, number
        turns.measured(guest, 10, 0, calls=1, full=False, single=True)
    assert [turns.calls(hog, now) for now in (10, 10 + INTERACTIVE, 10.01 + INTERACTIVE)] == [1, 1, MOST_CALLS]


def test_a_call_that_arrives_alone_between_others_does_not_end_turns_with_several() -> None:
    """A client with several calls in flight is not a person, although one of its requests may arrive alone."""
    turns, hog, busy = Turns(), Flow(), Flow()
    hog.calls = MOST_CALLS
    for number in range(10 * SINGLES):
        turns.measured(busy, 10, 0, calls=4, full=False, single=bool(number % SINGLES))
        assert turns.calls(hog, 10) == MOST_CALLS


async def test_calls_of_a_turn_count_for_the_order() -> None:
    """Between two turns of eight calls, each of the other connections has about eight turns of one call.

    One more or less, because tasks that are ready at the same time run in any order.
    """
    turns, order = Turns(), []
    hog = Flow()
    hog.calls = MOST_CALLS

    async def user(name: str, flow: Flow, times: int) -> None:
        for _ in range(times):
            await turns.begin(flow)
            order.append(name)
            await turns.end()
            turns.measured(flow, 0, SHORT, calls=flow.calls, full=True, single=False)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(user, "hog", hog, 4)
        for _ in range(2):
            nursery.start_soon(user, "guest", Flow(), 40)
    places = [index for index, name in enumerate(order) if name == "hog"]
    between = [later - earlier - 1 for earlier, later in pairwise(places)]
    assert all(abs(turns_of_others - 2 * MOST_CALLS) <= 2 for turns_of_others in between), between


@given(st.integers(1, 6), st.lists(st.integers(1, 30), max_size=20))
def test_frames_read_in_portions_are_the_same_frames(most: int, cuts: list[int]) -> None:
    parts = []
    for sid in range(1, 20, 2):
        parts.append(frames.headers(sid, b"block", end=False, max_frame=16384))
        parts.append(frames.frame(frames.DATA, 1, sid, b"abc"))
    whole = b"".join(parts)
    once, portions = Recorder(), Recorder()
    FrameReader(once, LIMITS).feed(whole)
    reader = FrameReader(portions, LIMITS)
    position = 0
    for cut in [*cuts, len(whole)]:
        data, position = whole[position : position + cut], position + cut
        while True:
            before = len(portions.events)
            more = reader.feed(data, most) > most
            assert sum(event[0] == "headers" for event in portions.events[before:]) <= most
            data = b""
            if not more:
                break
    assert portions.events == once.events


@pytest.mark.parametrize("limited", [True, False])
async def test_one_request_is_answered_among_the_first_of_a_hundred(limited: bool, monkeypatch: Any) -> None:
    """One connection sends HOG requests in one write, and then another one sends a single request."""
    if not limited:  # control: without turns the guest waits behind all of HOG
        monkeypatch.setattr(ServerCore, "alone", True)
    service = EchoService()
    core = ServerCore(service.__mapping__())
    async with trio.open_nursery() as nursery:
        hog, guest = clients = [H2Client(item) for item in (await _served(nursery, core), await _served(nursery, core))]
        for client in clients:
            await client.start()
        await wait_all_tasks_blocked()
        for client, times in ((hog, HOG), (guest, 1)):
            for _ in range(times):
                client.h2.send_data(client.begin(request("Echo")), message("hello"), end_stream=True)
            await client.flush()
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert len(service.seen) == HOG + 1
    peers = [id(stream.peer) for stream in service.seen]
    place = next(index for index, peer in enumerate(peers) if peers.count(peer) == 1)
    assert (place < 10) is limited


async def _served(nursery: trio.Nursery, core: ServerCore) -> trio.abc.Stream:
    ours, theirs = memory_stream_pair()
    nursery.start_soon(serve_http2, theirs, core)
    return ours


async def test_turns_without_others_waiting_do_not_count() -> None:
    """A client that was alone is served as early as others, and first if it waits for each response."""
    turns, order = Turns(), []
    person = Flow()
    for _ in range(2 * HOG):
        await turns.begin(person)
        await turns.end()
        turns.measured(person, 0, 0, calls=1, full=False, single=True)

    async def user(name: str, flow: Flow) -> None:
        for _ in range(3):
            await turns.begin(flow)
            order.append(name)
            await turns.end()

    await turns.begin(Flow())  # all wait for the same turn to end
    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(user, f"hog {number}", Flow())
        await wait_all_tasks_blocked()
        nursery.start_soon(user, "person", person)
        await wait_all_tasks_blocked()
        await turns.end()
    assert order[0] == "person"
    assert order[:9].count("person") == 1
