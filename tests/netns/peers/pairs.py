"""Pairs of connected peers for the scenes of this folder."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import trio

from rpc.peers.port import Engine, PeerChannel, PeerConnection, PeerOptions
from tests.netns.lan import ip

LIMIT = 120.0  # seconds for a scene; aiortc takes up to 25 where it sends much, because of lost datagrams
MODULES = {"wrtc": "rpc.peers.wrtc_engine", "aiortc": "tests.netns.peers.oracle.engine"}
NAMES = tuple(os.environ.get("PEER_ENGINES", "wrtc wrtc").split())
"""Engines of the end that makes the offer and of the one that answers."""


@pytest.fixture(scope="session", autouse=True)
def interface() -> None:
    """Give the network namespace of the scenes an interface: engines ignore loopback."""
    ip("link", "add", "lan0", "type", "veth", "peer", "name", "lan1")
    ip("address", "add", "10.77.0.1/24", "dev", "lan0")
    for name in ("lan0", "lan1"):
        ip("link", "set", name, "addrgenmode", "none")
        ip("link", "set", name, "up")


def scene(function: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Make a test of an asynchronous function, without pytest-trio, which would be slow to load."""

    @functools.wraps(function)
    def run(**arguments: Any) -> None:
        async def limited() -> None:
            with trio.fail_after(LIMIT):
                await function(**arguments)

        trio.run(limited)

    return run


@dataclass
class End:
    """One end of a connection."""

    peer: PeerConnection
    data: PeerChannel
    control: PeerChannel


@asynccontextmanager
async def engines(*names: str) -> AsyncIterator[list[Engine]]:
    """Yield an engine for each name; equal names share one."""
    opened: dict[str, Engine] = {}
    async with AsyncExitStack() as stack:
        for name in dict.fromkeys(names):
            module = importlib.import_module(MODULES[name])
            opened[name] = await stack.enter_async_context(module.open_engine())
        yield [opened[name] for name in names]


def new_end(engine: Engine) -> End:
    peer = engine.connect(PeerOptions())
    return End(peer, peer.channel("data", 0), peer.channel("negotiation", 1))


async def trickle(source: PeerConnection, target: PeerConnection) -> None:
    """Pass all local candidates of one end to the other one."""
    while (candidate := await source.next_candidate()) is not None:
        await target.add_candidate(candidate)


async def join(one_end: End, other_end: End) -> None:
    """Connect two ends: offer, answer, candidates."""
    await other_end.peer.accept(await one_end.peer.offer())
    await one_end.peer.accept(await other_end.peer.answer())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trickle, one_end.peer, other_end.peer)
        nursery.start_soon(trickle, other_end.peer, one_end.peer)
        for channel in (one_end.data, one_end.control, other_end.data, other_end.control):
            await channel.wait_open()


@asynccontextmanager
async def connected(*names: str) -> AsyncIterator[tuple[End, End]]:
    """Yield the two ends of a connection between the engines NAMES."""
    async with engines(*(names or NAMES)) as (first, second):
        ends = new_end(first), new_end(second)
        await join(*ends)
        yield ends
