"""Radios that are removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import trio

from netmgr.model.facts import OWN, Association, NetworkLink, WifiRadio
from netmgr.model.network import UsableNetwork
from netmgr.model.plan import Join, StopHotspot
from netmgr.model.settings import Hotspot
from netmgr.netlink.rfkill import Switches
from netmgr.observation.board import FactsBoard
from netmgr.service.radios import Wifi
from netmgr.service.tasks import Tasks
from schema.errors import MachineError

HOME = UsableNetwork(label="home", kind="wifi", source="cloud", ssid=b"home")
SETUP = Hotspot(ssid=b"setup", password="password")
JOINED = Association(ssid=b"home", bssid="", frequency=2412)


def radio(number: int) -> WifiRadio:
    return WifiRadio(number=number, hotspot=True, both=True)


def link(radio: int) -> NetworkLink:
    return NetworkLink(
        index=3 + radio, name="wlan0", kind="wifi", up=True, carrier=True, mac="", radio=radio, manager=OWN
    )


class Supplicants:
    """Supplicants that do nothing; `events` is what happens to them, with the number of the radio."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []

    def new(self, number: int, *_: object) -> Any:
        return Supplicant(self.events, number)


class Supplicant:
    def __init__(self, events: list[tuple[str, int]], number: int) -> None:
        self._events, self._number = events, number
        self.interface_names: tuple[str, ...] = ()

    async def run(self) -> None:
        self._events.append(("runs", self._number))
        try:
            await trio.sleep_forever()
        finally:
            self._events.append(("cancelled", self._number))

    async def end(self) -> None:
        await trio.lowlevel.checkpoint()
        self._events.append(("ended", self._number))

    async def join(self, interface: str, network: UsableNetwork) -> None:
        await trio.lowlevel.checkpoint()
        self.interface_names = (interface,)


class Radios:
    """Radios of the kernel."""

    def __init__(self) -> None:
        self.numbers = [0]

    async def radios(self) -> tuple[WifiRadio, ...]:
        await trio.lowlevel.checkpoint()
        return tuple(radio(number) for number in self.numbers)

    async def country(self) -> str:
        await trio.lowlevel.checkpoint()
        return "00"

    async def joined(self) -> dict[str, bytes]:
        await trio.lowlevel.checkpoint()
        return {}


async def observed(wifi: Wifi, radios: Radios) -> None:
    await wifi._observe(cast(Any, radios))
    await trio.testing.wait_all_tasks_blocked()


def made(board: FactsBoard, tasks: Tasks, supplicants: Supplicants, tmp_path: Path) -> Wifi:
    ignored: Any = None
    switches = Switches(device=tmp_path / "none")
    return Wifi(
        board, ignored, switches, tasks, lambda _: None, lambda *_: None, ignored, ignored, cast(Any, supplicants.new)
    )


async def test_the_supplicant_of_a_removed_radio_ends_and_a_new_radio_gets_its_own(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    board, supplicants, radios = FactsBoard(), Supplicants(), Radios()
    wifi = made(board, Tasks(nursery), supplicants, tmp_path)
    board.put(links=(link(0),))
    await wifi.join(Join(interface="wlan0", network=HOME))
    board.put_for("associations", "wlan0", JOINED)
    await observed(wifi, radios)
    assert supplicants.events == [("runs", 0)], "the radio is there"
    radios.numbers = []
    board.put(links=(link(0),))  # the tables of links are read a little later
    await observed(wifi, radios)
    with pytest.raises(MachineError, match="no wifi interface"):
        await wifi.join(Join(interface="wlan0", network=HOME))
    assert supplicants.events == [("runs", 0), ("cancelled", 0), ("ended", 0)]
    facts = board.facts()
    assert (facts.joining, facts.clients, facts.associations) == ({}, {}, {})
    radios.numbers = [1]
    board.put(links=(link(1),))
    await wifi.join(Join(interface="wlan0", network=HOME))
    await observed(wifi, radios)
    assert supplicants.events[3:] == [("runs", 1)]


async def test_a_hotspot_whose_radio_was_removed_counts_as_ended(nursery: trio.Nursery, tmp_path: Path) -> None:
    board = FactsBoard()
    wifi = made(board, Tasks(nursery), Supplicants(), tmp_path)
    board.put(hotspot="wlan0", hosted=SETUP)
    await wifi.stop_hotspot(StopHotspot(interface="wlan0"))
    assert (board.facts().hotspot, board.facts().hosted) == ("", None)
