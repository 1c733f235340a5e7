"""The board of facts, and the managers of interfaces."""

from __future__ import annotations

import trio
from msgspec.structs import replace
from trio.testing import MockClock

from netmgr.model.facts import Manager, NetworkLink
from netmgr.observation.board import FactsBoard
from netmgr.observation.kernel import Managers

ETHERNET = NetworkLink(index=2, name="eth0", kind="wired", up=True, carrier=False, mac="02:00:00:00:00:01")


async def test_changes_are_notified_and_repetitions_are_not(autojump_clock: MockClock) -> None:
    board = FactsBoard()
    before = board.changed
    board.put(links=(ETHERNET,))
    assert before.is_set()
    before = board.changed
    board.put(links=(ETHERNET,))
    assert not before.is_set()
    board.put_for("cloud", "eth0", True)
    assert board.facts().cloud == {"eth0": True}
    board.put_for("cloud", "eth0", None)
    assert board.facts().cloud == {}
    assert board.facts().now == trio.current_time()


async def test_a_manager_is_asked_again_only_after_a_change() -> None:
    asked: list[str] = []

    async def manager_of(interface: str) -> Manager:
        await trio.lowlevel.checkpoint()
        asked.append(interface)
        return "NetworkManager"

    managers = Managers(manager_of)
    loopback = replace(ETHERNET, index=1, name="lo", kind="other")
    links = await managers.named((loopback, ETHERNET))
    assert [link.manager for link in links] == ["", "NetworkManager"]
    await managers.named((loopback, ETHERNET))
    assert asked == ["eth0"]
    await managers.named((loopback, replace(ETHERNET, carrier=True)))
    assert asked == ["eth0"] * 2
    managers.forget("eth0")
    await managers.named((replace(ETHERNET, carrier=True),))
    assert asked == ["eth0"] * 3
