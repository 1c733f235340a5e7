"""Scenes for test_conformance.py: opened and closed connections leave nothing, for the engines of `pairs.NAMES`."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable

import psutil
import pytest
import trio

from rpc.peers.media.negotiation import Negotiator
from rpc.peers.port import MAX_MESSAGE, Engine
from tests.netns.peers.pairs import NAMES, engines, interface, join, new_end, scene
from tests.netns.peers.video_scenes import see
from tests.netns.peers.viewers import let_media_in, view

__all__ = ["interface"]
WARM = 20  # connections before the first count; libwebrtc's heap is flat from here on
CONNECTIONS = 100
CLOSING = 10.0  # seconds for the sockets of the last pairs
GROWTH = 8 << 20  # bytes: 80 KiB a connection would be a leak of half of what it needs
SHOWN = 16 << 20  # the same with video, whose encoder needs 16 MiB for each connection
THREADS = 8  # engines start some threads late; a leak would be one for each connection


async def connect_and_close(first: Engine, second: Engine) -> None:
    ends = new_end(first), new_end(second)
    await join(*ends)
    await ends[0].data.send(bytes(MAX_MESSAGE))
    await ends[1].data.receive()
    for end in ends:
        end.peer.close()


async def show_and_close(first: Engine, second: Engine) -> None:
    """Show pictures on a connection, end the video, and show others."""
    ends = new_end(first), new_end(second)
    let_media_in(ends[1].peer)
    await join(*ends)
    async with trio.open_nursery() as nursery:
        negotiators = [Negotiator(end.peer, end.control) for end in ends]
        for negotiator in negotiators:
            nursery.start_soon(negotiator.run)
        for _ in range(2):
            track = ends[0].peer.add_video("cam")
            await negotiators[0].offer()
            await see(track, view(ends[1].peer), 100)
            track.close()
        for end in ends:
            end.peer.close()


@pytest.mark.parametrize("use", [connect_and_close, show_and_close])
@scene
async def test_connections_leave_nothing(use: Callable[[Engine, Engine], Awaitable[None]]) -> None:
    process = psutil.Process()
    async with engines(*NAMES) as (first, second):

        async def used(connections: int) -> tuple[int, int, int]:
            for _ in range(connections // 2):
                await use(first, second)
            gc.collect()
            return process.num_fds(), process.num_threads(), process.memory_info().rss

        before = await used(WARM)
        after = await used(CONNECTIONS)
        with trio.move_on_after(CLOSING):  # engines close sockets in threads of their own
            while process.num_fds() > before[0] + 2:  # noqa: ASYNC110 - no event says that they are closed
                await trio.sleep(0.05)
        after = process.num_fds(), *after[1:]
        print(before, after)
        assert after[0] <= before[0] + 2  # sockets of the last pair may still be open
        assert after[1] <= before[1] + THREADS
        assert after[2] - before[2] < (GROWTH if use is connect_and_close else SHOWN)
