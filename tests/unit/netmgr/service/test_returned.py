"""Interfaces that return after their removal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import trio

from netmgr.model.facts import OWN, Manager, NetworkFacts, NetworkLink
from netmgr.service.returned import AGAIN, WATCHED, Returned

MANAGERS: Mapping[str, Manager] = {"wlan0": "NetworkManager", "eth0": ""}
WLAN0 = NetworkLink(index=3, name="wlan0", kind="wifi", up=True, carrier=True, mac="", radio=0, manager=OWN)


class Owner:
    """A program that notices interfaces late."""

    name = "NetworkManager"

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.managing = False

    async def manages(self, interface: str) -> bool:
        await trio.lowlevel.checkpoint()
        return self.managing

    async def take(self, interface: str) -> None:
        await trio.lowlevel.checkpoint()
        self.taken.append(interface)


def facts(*links: NetworkLink, now: float = 100.0) -> NetworkFacts:
    return NetworkFacts(now=now, links=links)


async def test_an_interface_is_taken_over_once_when_it_returns_and_is_managed_again() -> None:
    owner = Owner()
    returned = Returned(cast(Any, [owner]))
    assert await returned.take_again(facts(WLAN0), MANAGERS) == math.inf
    assert await returned.take_again(facts(), MANAGERS) == math.inf
    assert await returned.take_again(facts(WLAN0), MANAGERS) == 100 + AGAIN
    assert owner.taken == []
    owner.managing = True
    assert await returned.take_again(facts(WLAN0, now=101), MANAGERS) == math.inf
    assert await returned.take_again(facts(WLAN0, now=102), MANAGERS) == math.inf
    assert owner.taken == ["wlan0"]


async def test_an_interface_that_is_not_managed_again_is_watched_only_for_a_while() -> None:
    owner = Owner()
    returned = Returned(cast(Any, [owner]))
    await returned.take_again(facts(), MANAGERS)
    assert await returned.take_again(facts(WLAN0), MANAGERS) == 100 + AGAIN
    end = 100 + WATCHED
    assert await returned.take_again(facts(WLAN0, now=end), MANAGERS) == end + AGAIN
    assert await returned.take_again(facts(WLAN0, now=end + 1), MANAGERS) == math.inf


async def test_an_interface_that_was_given_back_meanwhile_is_left_alone() -> None:
    owner = Owner()
    owner.managing = True
    returned = Returned(cast(Any, [owner]))
    await returned.take_again(facts(), MANAGERS)
    assert await returned.take_again(facts(WLAN0), {}) == math.inf
    assert owner.taken == []
