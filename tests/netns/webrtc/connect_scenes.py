"""Scenes for test_webrtc.py: connections of the Python SDK over different networks, by its default dial."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.netns.internet import ADDRESSES, CLIENT, MACHINE, STUN, TURN, Internet
from tests.netns.peers.pairs import scene
from tests.netns.router import Filter
from tests.netns.webrtc.sdk import Failed, Sdk
from tests.netns.webrtc.world import World, world

CALLS = 50


def symmetric(*names: str, filter: Filter = Filter.PORT) -> Callable[[Internet], None]:  # noqa: A002
    """Return a change of the network: these ends have symmetric NATs, the others cones with `filter`."""

    def change(net: Internet) -> None:
        for name in (CLIENT, MACHINE):
            net.nat(name, symmetric=name in names, filter=filter)

    return change


DIRECT: dict[str, Callable[[Internet], None]] = {
    "cones": symmetric(),
    "symmetric at the client": symmetric(CLIENT, filter=Filter.ADDRESS),
    "symmetric at the machine": symmetric(MACHINE, filter=Filter.ADDRESS),
}
RELAYED: dict[str, tuple[Callable[[Internet], None], dict[str, Any]]] = {
    "symmetric at both ends": (symmetric(CLIENT, MACHINE), {}),
    "relay only": (symmetric(), {"force_relay": True}),
}


async def use(made: World, client: Sdk, **options: Any) -> float:
    """Connect, make calls and disconnect; return the seconds of the connection."""
    connected: dict[str, float] = await made.dial(client, **options)
    await client("read", count=CALLS)
    await client("close")
    return connected["seconds"]


@scene
async def test_direct(tmp_path: Path) -> None:
    """With a STUN server only, connections are direct or fail."""
    async with world(tmp_path, STUN, relay=True) as made, made.sdk() as client:
        for name, change in DIRECT.items():
            change(made.net)
            print(f"{name}: {await use(made, client)} s, {made.paths()[-1]}")


@scene
async def test_relayed(tmp_path: Path) -> None:
    """These NATs let nothing through between the ends, as `test_without_a_way` shows."""
    async with world(tmp_path, STUN, TURN, relay=True) as made, made.sdk() as client:
        for name, (change, options) in RELAYED.items():
            change(made.net)
            print(f"{name}: {await use(made, client, **options)} s, {made.paths()[-1]}")


@pytest.mark.parametrize("names", [(CLIENT,), (CLIENT, MACHINE)], ids=str)
@scene
async def test_without_a_way(tmp_path: Path, names: tuple[str, ...]) -> None:
    """The client fails at its time limit."""
    async with world(tmp_path, STUN, relay=True) as made, made.sdk() as client:
        symmetric(*names)(made.net)
        with pytest.raises(Failed):
            await made.dial(client, timeout=5, initial_connection_attempts=1)
        assert made.paths() == []


@pytest.mark.parametrize("version", [4, 6])
@scene
async def test_without_nat(tmp_path: Path, version: int) -> None:
    async with world(tmp_path, version=version, nat=False) as made, made.sdk() as client:
        await use(made, client)
        assert made.paths()[0][0] == "host"
        with pytest.raises(Failed, match="Unable to establish"):  # the client cannot reach the port of the machine
            await made.dial(client, host=made.machine_address, timeout=2, initial_connection_attempts=1)


@pytest.mark.parametrize("properties", [{"loss": 0.05}, {"delay": 0.1}, {"loss": 0.05, "delay": 0.05}], ids=str)
@scene
async def test_a_bad_network(tmp_path: Path, properties: dict[str, float]) -> None:
    """Each link loses 5 % of packets in each direction, or delays them by 100 ms: 200 ms one way between the ends."""
    async with world(tmp_path, STUN, TURN, relay=True) as made, made.sdk() as client:
        made.net.each(**properties)
        for options in ({}, {"force_relay": True}):
            connected = await made.dial(client, **options)
            figures = await client("read", count=CALLS)
            await client("close")
            print(properties, options, connected, figures, made.paths()[-1])


@pytest.mark.parametrize("end", [CLIENT, MACHINE])
@pytest.mark.parametrize("inner", [True, False], ids=["address", "public address"])
@scene
async def test_a_change_of_networks(tmp_path: Path, end: str, *, inner: bool) -> None:
    """The address of one end, or that of its NAT, changes during calls; the client connects again by itself."""
    async with world(tmp_path, STUN, TURN, relay=True) as made, made.sdk() as client:
        await made.dial(client, check=None)
        await client("watch")
        await trio.sleep(1)
        if inner:
            made.net.readdress(end, ADDRESSES[end][4], f"{ADDRESSES[end][4]}0")
        else:
            made.net.renumber(end, "198.51.100.77")
        print(await recovered(client, 100), made.paths())


async def recovered(client: Sdk, limit: float) -> dict[str, Any]:
    """Wait until a client that watches has had an outage that is over; return its figures."""
    figures: dict[str, Any] = {}
    with trio.move_on_after(limit):
        while True:
            await trio.sleep(1)
            figures = await client("outage")
            if figures["longest"] > 0.2 and figures["last"] < 1:
                return figures
    raise AssertionError(figures)
