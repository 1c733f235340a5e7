"""State and local candidates of a connection."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from rpc.peers.connection import ConnectionBase
from rpc.peers.port import IceCandidate, PeerState


async def test_a_state_that_was_left_again_is_returned() -> None:
    connection = ConnectionBase()
    states = []

    async def wait() -> None:
        states.append(await connection.wait_state(PeerState.CONNECTED, PeerState.FAILED))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        for state in (PeerState.CONNECTING, PeerState.CONNECTED, PeerState.DISCONNECTED, PeerState.CLOSED):
            connection.entered(state)
    assert states == [PeerState.CONNECTED]


async def test_a_closed_connection_ends_waits_for_other_states() -> None:
    connection = ConnectionBase()

    async def wait() -> None:
        with pytest.raises(trio.BrokenResourceError):
            await connection.wait_state(PeerState.CONNECTED)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        connection.entered(PeerState.CLOSED)
    await wait()
    connection.entered(PeerState.CONNECTED)
    assert await connection.wait_state(PeerState.CLOSED) is PeerState.CLOSED


async def test_cancelled_waits_leave_nothing() -> None:
    connection = ConnectionBase()
    with trio.CancelScope() as scope:
        scope.cancel()
        await connection.wait_state(PeerState.CONNECTED)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.wait_state, PeerState.CONNECTED)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert not connection._waiters


async def test_candidates_come_in_order_and_then_none() -> None:
    connection = ConnectionBase()
    candidates = []

    async def collect() -> None:
        while (candidate := await connection.next_candidate()) is not None:
            candidates.append(candidate.text)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(collect)
        await wait_all_tasks_blocked()
        for text in ("first", "second"):
            connection.gathered(IceCandidate(text))
        await wait_all_tasks_blocked()
        connection.gathered(IceCandidate("third"))
        connection.gathered(None)
    assert candidates == ["first", "second", "third"]
    assert await connection.next_candidate() is None


async def test_a_closed_connection_has_no_more_candidates() -> None:
    connection = ConnectionBase()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.next_candidate)
        await wait_all_tasks_blocked()
        connection.entered(PeerState.CLOSED)
    assert await connection.next_candidate() is None
