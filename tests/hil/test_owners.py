"""Interfaces of the real NetworkManager and systemd-networkd: adopt their networks, take them over, give them back."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from tests.hil.image.contents import SOURCE
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant
from tests.hil.test_air import HOME, PASSPHRASE, join, know
from tests.hil.test_network import running, until_runs
from tests.scope import RIG, on_demand

pytestmark = pytest.mark.systemd
slow = on_demand(30, RIG)

WIRED = """[Match]
Name=eth7

[Network]
Address=192.0.2.7/24
"""


async def owners(guest: Guest, *words: str) -> Any:
    done = await guest.run(f"cd {SOURCE} && python3 -m tests.hil.guest.owners {' '.join(words)}", limit=60)
    return json.loads(done.stdout.splitlines()[-1])


async def addresses(guest: Guest, interface: str) -> str:
    return (await guest.run(f"ip -4 -brief address show dev {interface}")).stdout


async def test_network_manager_gives_up_its_radio_and_gets_it_back(guest: Guest, plant: Plant) -> None:
    air = await plant.air(radios=2)
    point = await air.access_point(HOME, PASSPHRASE)
    await air.network_manager()
    await know(guest, HOME, HOME, PASSPHRASE, **{"connection.autoconnect-priority": "7"})
    await join(guest, HOME)
    assert await owners(guest, "owner", "wlan0") == "NetworkManager"
    (network,) = await owners(guest, "networks", "wlan0")
    assert (network["label"], network["priority"]) == (f"adopted: {HOME}", 7)
    assert network["security"]["passphrase"] == PASSPHRASE
    await owners(guest, "take", "wlan0")
    assert await owners(guest, "owner", "wlan0") is None
    assert "unmanaged" in (await guest.run("nmcli -t -f DEVICE,STATE device")).stdout
    assert await point.stations() == []
    await guest.run("ip address flush dev wlan0")  # NetworkManager leaves its address there
    await owners(guest, "give_back", "wlan0", "NetworkManager")
    assert await owners(guest, "owner", "wlan0") == "NetworkManager"
    await guest.run("nm-online -q -t 100", limit=110)
    assert "192.168." in await addresses(guest, "wlan0")


@slow
async def test_a_radio_that_is_plugged_in_again_is_taken_over_again(guest: Guest, plant: Plant) -> None:
    air = await plant.air(radios=2)
    await air.access_point(HOME, PASSPHRASE)
    await air.network_manager()
    home = {"type": "wifi", "ssid": HOME, "psk": PASSPHRASE}
    settings = {
        "network_configuration": {"offline_before_starting_hotspot_minutes": 1},
        "additional_networks": {"home": home},
    }
    async with running(guest, configured=True, settings=settings) as device:
        await device.mode("online", limit=200)
        assert "wlan0:unmanaged" in (await guest.run("nmcli -t -f DEVICE,STATE device")).stdout
        await guest.run(f"cd {SOURCE} && python3 -m tests.hil.guest.radios unplug wlan0")
        await device.mode("searching")
        begin = trio.current_time()
        await guest.run(f"cd {SOURCE} && python3 -m tests.hil.guest.radios plug")
        await device.mode("online")
        print(f"ROW radio plugged in again where NetworkManager runs: online: {trio.current_time() - begin:.1f} s")
        assert "wlan0:unmanaged" in (await guest.run("nmcli -t -f DEVICE,STATE device")).stdout


@on_demand(20, RIG)
async def test_networkd_gives_up_its_link_and_gets_it_back(guest: Guest) -> None:
    await guest.run("ip link add eth7 type veth peer name peer7 && ip link set peer7 up")
    await guest.run("mkdir -p /etc/systemd/network")
    await guest.write("/etc/systemd/network/10-eth7.network", WIRED)
    await guest.run("systemctl unmask --runtime systemd-networkd; rm -f /etc/systemd/system/systemd-networkd.service")
    await guest.run("systemctl daemon-reload && systemctl start systemd-networkd")
    await guest.run("/lib/systemd/systemd-networkd-wait-online -i eth7 --timeout=60", limit=70)
    assert "192.0.2.7/24" in await addresses(guest, "eth7")
    assert await owners(guest, "owner", "eth7") == "systemd-networkd"
    await owners(guest, "take", "eth7")
    assert await owners(guest, "owner", "eth7") is None
    assert "unmanaged" in (await guest.run("networkctl --no-legend list eth7")).stdout
    await owners(guest, "give_back", "eth7", "systemd-networkd")
    await guest.run("/lib/systemd/systemd-networkd-wait-online -i eth7 --timeout=60", limit=70)
    assert await owners(guest, "owner", "eth7") == "systemd-networkd"
    assert "192.0.2.7/24" in await addresses(guest, "eth7")


async def test_the_whole_service_leaves_network_manager_alone_until_it_must_not(guest: Guest, plant: Plant) -> None:
    air = await plant.air(radios=2)
    await air.access_point(HOME, PASSPHRASE)
    await air.network_manager()
    await know(guest, HOME, HOME, PASSPHRASE)
    await join(guest, HOME)
    async with running(guest, "/tmp/owners", configured=True) as device:
        print(f"online after {await device.mode('online')} s")
        await trio.sleep(10)
        assert "wlan0:connected" in (await guest.run("nmcli -t -f DEVICE,STATE device")).stdout
        status = await device.call("status")
        assert "NetworkManager" in {entry["manager"] for entry in status["interfaces"]}
        await device.send(force=True)
        await device.mode("hotspot")
        await until_runs(device)
        states = (await guest.run("nmcli -t -f DEVICE,STATE device")).stdout
        assert "wlan0:unmanaged" in states
        assert "machine-hotspot:unmanaged" in states
        await device.send(settings={"advanced_settings": {"disable_network_configuration": True}})
        with trio.fail_after(110):
            while "wlan0:connected" not in (await guest.run("nmcli -t -f DEVICE,STATE device")).stdout:  # noqa: ASYNC110
                await trio.sleep(1)
