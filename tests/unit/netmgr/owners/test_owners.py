"""Programs that own interfaces, with a bus and a file system of the test."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from netmgr.model.facts import Manager
from netmgr.owners.bus import Bus, BusError
from netmgr.owners.detect import owner_named, owner_of
from netmgr.owners.dhcpcd import Dhcpcd, includes
from netmgr.owners.ifupdown import Ifupdown
from netmgr.owners.network_manager import NetworkManager, ignore
from netmgr.owners.networkd import Networkd
from schema.errors import ErrorKind, MachineError

Reply = tuple[Any, ...] | BusError
ABSENT = BusError("org.freedesktop.DBus.Error.ServiceUnknown", "no such service")


class FakeBus:
    """A bus with one reply for each method, or for each property."""

    def __init__(self, **replies: Reply) -> None:
        self.replies = replies
        self.calls: list[tuple[Any, ...]] = []

    async def call(
        self, service: str, path: str, interface: str, method: str, signature: str = "", *arguments: object
    ) -> tuple[Any, ...]:
        self.calls.append((method, *arguments))
        reply = self.replies[f"{arguments[1]}" if method == "Get" else method]
        if isinstance(reply, BusError):
            raise reply
        return reply

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Bus]:
        yield self


async def at_once(work: Callable[[], Any]) -> Any:
    return work()


@pytest.mark.parametrize("managed", [True, False])
async def test_network_manager_reports_managed_devices(managed: bool) -> None:
    bus = FakeBus(GetDeviceByIpIface=("/device/2",), Managed=(("b", managed),))
    assert await NetworkManager(bus.open).manages("wlan0") is managed


@pytest.mark.parametrize(
    "error", [ABSENT, BusError("org.freedesktop.NetworkManager.UnknownDevice", "No device found for wlan7")]
)
async def test_network_manager_does_not_manage_what_it_does_not_know(error: BusError) -> None:
    bus = FakeBus(GetDeviceByIpIface=error)
    manager = NetworkManager(bus.open)
    assert not await manager.manages("wlan7")
    await manager.take("wlan7")
    await manager.give_back("wlan7")
    assert {call[0] for call in bus.calls} == {"GetDeviceByIpIface"}


async def test_network_manager_ignores_an_interface_that_does_not_exist_yet(tmp_path: Path) -> None:
    bus = FakeBus(Version=(("s", "1.42"),), Reload=())
    for _ in range(2):
        await ignore("machine-hotspot", at_once, tmp_path, bus.open)
    text = (tmp_path / "machine-hotspot.conf").read_text()
    assert "match-device=interface-name:machine-hotspot\nmanaged=0" in text
    assert [call for call in bus.calls if call[0] == "Reload"] == [("Reload", 1)]


async def test_nothing_is_written_where_network_manager_does_not_run(tmp_path: Path) -> None:
    await ignore("machine-hotspot", at_once, tmp_path, FakeBus(Version=ABSENT).open)
    assert os.listdir(tmp_path) == []


async def test_other_errors_of_network_manager_are_reported() -> None:
    denied = BusError("org.freedesktop.DBus.Error.AccessDenied", "NetworkManager refuses it: not authorized")
    with pytest.raises(MachineError, match="not authorized") as caught:
        await NetworkManager(FakeBus(GetDeviceByIpIface=denied).open).manages("wlan0")
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_a_device_of_network_manager_is_taken_and_given_back() -> None:
    bus = FakeBus(GetDeviceByIpIface=("/device/2",), Set=())
    manager = NetworkManager(bus.open)
    await manager.take("wlan0")
    await manager.give_back("wlan0")
    changes = [call for call in bus.calls if call[0] == "Set"]
    assert changes == [
        ("Set", "org.freedesktop.NetworkManager.Device", "Managed", ("b", False)),
        ("Set", "org.freedesktop.NetworkManager.Device", "Managed", ("b", True)),
    ]


async def test_connections_of_network_manager_are_adopted_with_their_secrets() -> None:
    settings = {
        "connection": {"id": ("s", "home"), "type": ("s", "802-11-wireless")},
        "802-11-wireless": {"ssid": ("ay", b"home")},
        "802-11-wireless-security": {"key-mgmt": ("s", "wpa-psk")},
    }
    secrets = {"802-11-wireless-security": {"psk": ("s", "correct horse")}}
    bus = FakeBus(ListConnections=(["/1"],), GetSettings=(settings,), GetSecrets=(secrets,))
    (network,) = await NetworkManager(bus.open).networks("wlan0")
    assert network.ssid == b"home"
    other = {**settings, "connection": {**settings["connection"], "interface-name": ("s", "wlan1")}}
    bus.replies["GetSettings"] = (other,)
    assert await NetworkManager(bus.open).networks("wlan0") == ()
    bus.replies["GetSecrets"] = BusError("org.freedesktop.NetworkManager.AgentManager.NoSecrets", "No agents")
    assert await NetworkManager(bus.open).networks("wlan1") == ()


@pytest.mark.parametrize(("state", "managed"), [("configured", True), ("pending", True), ("unmanaged", False)])
async def test_networkd_reports_managed_links(state: str, managed: bool) -> None:
    bus = FakeBus(GetLinkByName=(3, "/link/3"), AdministrativeState=(("s", state),))
    assert await Networkd(at_once, bus.open).manages("eth0") is managed
    assert not await Networkd(at_once, FakeBus(GetLinkByName=ABSENT).open).manages("eth0")


async def test_a_link_of_networkd_is_taken_and_given_back(tmp_path: Path) -> None:
    bus = FakeBus(
        GetLinkByName=(3, "/link/3"), Reload=(), ReconfigureLink=(), StopUnit=("/job",), StartUnit=("/job",),
        GetUnitFileState=("enabled",),
    )  # fmt: skip
    owner = Networkd(at_once, bus.open, tmp_path)
    file = tmp_path / "run/systemd/network/00-machine-agent-wlan0.network"
    await owner.take("wlan0")
    assert "Name=wlan0\n\n[Link]\nUnmanaged=yes\n" in file.read_text()
    assert [call[0] for call in bus.calls] == ["GetLinkByName", "Reload", "ReconfigureLink", "StopUnit"]
    bus.calls.clear()
    await owner.give_back("wlan0")
    await owner.give_back("wlan0")  # may be repeated
    assert not file.exists()
    assert ("StartUnit", "wpa_supplicant@wlan0.service", "replace") in bus.calls
    bus.replies["GetUnitFileState"] = ("disabled",)
    bus.calls.clear()
    await owner.give_back("wlan0")
    assert "StartUnit" not in {call[0] for call in bus.calls}


async def test_networks_of_a_link_of_networkd_are_those_of_wpa_supplicant(tmp_path: Path) -> None:
    owner = Networkd(at_once, FakeBus().open, tmp_path)
    assert await owner.networks("wlan0") == ()
    file = tmp_path / "etc/wpa_supplicant/wpa_supplicant-wlan0.conf"
    file.parent.mkdir(parents=True)
    file.write_text('network={\n ssid="home"\n psk="correct horse"\n}\n')
    (network,) = await owner.networks("wlan0")
    assert network.ssid == b"home"


@pytest.mark.parametrize(
    ("configuration", "included"),
    [
        ("", True),
        ("denyinterfaces eth0 wlan0\n", False),
        ("denyinterfaces wlan*  # mine\n", False),
        ("#denyinterfaces wlan0\n", True),
        ("allowinterfaces eth0\n", False),
        ("allowinterfaces eth0\nallowinterfaces wlan?\n", True),
        ("allowinterfaces wlan0\ndenyinterfaces wlan0\n", False),
    ],
)
def test_dhcpcd_manages_what_its_configuration_includes(configuration: str, included: bool) -> None:
    assert includes(configuration, "wlan0") is included


async def test_dhcpcd_that_does_not_run_manages_nothing(tmp_path: Path) -> None:
    (tmp_path / "run/dhcpcd").mkdir(parents=True)
    (tmp_path / "run/dhcpcd/pid").write_text("999999999\n")
    assert not await Dhcpcd(at_once, tmp_path).manages("eth0")


async def test_ifupdown_manages_what_it_has_configured(tmp_path: Path) -> None:
    owner = Ifupdown(at_once, tmp_path)
    assert not await owner.manages("eth0")
    (tmp_path / "run/network").mkdir(parents=True)
    (tmp_path / "run/network/ifstate").write_text("lo=lo\neth0=eth0\n")
    assert await owner.manages("eth0")
    assert not await owner.manages("lo")
    assert not await owner.manages("")


class Answering:
    """An owner that answers, or fails."""

    def __init__(self, name: Manager, answer: bool | MachineError) -> None:
        self.name, self._answer = name, answer

    async def manages(self, interface: str) -> bool:
        if isinstance(self._answer, MachineError):
            raise self._answer
        return self._answer

    networks = take = give_back = partial(at_once)


async def test_a_program_that_fails_does_not_hide_the_owner() -> None:
    broken = Answering("NetworkManager", MachineError("no answer", kind=ErrorKind.UNAVAILABLE))
    other, owner = Answering("systemd-networkd", answer=False), Answering("dhcpcd", answer=True)
    owners: tuple[Any, ...] = (broken, other, owner)
    assert await owner_of("eth0", owners) is owner
    assert await owner_of("eth0", owners[:2]) is None
    assert owner_named("dhcpcd", owners) is owner
    assert owner_named("ifupdown", owners) is None


async def test_dhcpcd_that_manages_all_interfaces_is_asked_at_its_socket(tmp_path: Path, nursery: trio.Nursery) -> None:
    (tmp_path / "run/dhcpcd").mkdir(parents=True)
    path = tmp_path / "run/dhcpcd/sock"
    received: list[bytes] = []

    async def answer() -> None:
        with trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM) as server:
            await server.bind(str(path))
            server.listen()
            ready.set()
            connection, _ = await server.accept()
            with connection:
                while data := await connection.recv(100):
                    received.append(data)

    ready = trio.Event()
    nursery.start_soon(answer)
    await ready.wait()
    await Dhcpcd(at_once, tmp_path).take("eth0")
    assert b"".join(received) == b"dhcpcd\0-x\0eth0\0"
