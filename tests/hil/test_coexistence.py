"""netmgr beside each program that manages interfaces: it is left alone, taken over, and given back."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

import pytest
import trio

from tests.hil.rig.guest import Guest
from tests.hil.test_network import Device, running
from tests.scope import RIG, on_demand

pytestmark = [
    pytest.mark.systemd,
    on_demand(60, RIG),
]

ROUTER: Final = "192.0.2.1"
STATIC: Final = "192.0.2.77/24"


class Manager(NamedTuple):
    """Program that configures cable7: its files, and the commands that start and stop it."""

    name: str
    files: dict[str, str]
    start: str
    stop: str


NETWORKD: Final = "[Match]\nName=cable7\n\n[Network]\nDHCP=ipv4\n"
START_NETWORKD: Final = (
    "systemctl unmask --runtime systemd-networkd; rm -f /etc/systemd/system/systemd-networkd.service; "
    "systemctl daemon-reload && systemctl restart systemd-networkd"
)
MANAGERS: Final = (
    Manager(
        "systemd-networkd",
        {"/etc/systemd/network/10-cable7.network": NETWORKD},
        START_NETWORKD,
        "systemctl stop systemd-networkd",
    ),
    Manager(  # netplan writes files for systemd-networkd below /run
        "systemd-networkd",
        {"/run/systemd/network/10-netplan-cable7.network": NETWORKD},
        START_NETWORKD,
        "systemctl stop systemd-networkd",
    ),
    Manager(
        "ifupdown",
        {"/etc/network/interfaces": f"iface cable7 inet static\n address 192.0.2.7/24\n gateway {ROUTER}\n"},
        "mkdir -p /run/network; ifup cable7",
        "ifdown --force cable7",
    ),
    Manager(
        "dhcpcd",
        {"/etc/dhcpcd.conf": "allowinterfaces cable7\nnoipv6\nduid\npersistent\n"},
        "systemd-run --quiet --unit=dhcpcd --service-type=forking dhcpcd",
        "systemctl stop dhcpcd",
    ),
)


@pytest.fixture
async def cable(guest: Guest) -> AsyncIterator[None]:
    """Provide cable7, whose other end is a router with a DHCP server."""
    await guest.run(
        "ip netns add router; ip link add cable7 type veth peer name lan netns router; "
        f"ip -n router address add {ROUTER}/24 dev lan; ip -n router link set lan up; "
        "ip netns exec router dnsmasq --conf-file=/dev/null --no-resolv --no-hosts --interface=lan --no-ping "
        "--dhcp-authoritative --dhcp-range=192.0.2.10,192.0.2.60,1h --dhcp-leasefile=/tmp/leases "
        "--pid-file=/tmp/dnsmasq.pid"
    )
    yield
    await guest.run("kill $(cat /tmp/dnsmasq.pid); ip netns del router; ip link del cable7", check=False)


async def addresses(guest: Guest) -> list[str]:
    """Return the IPv4 addresses of cable7."""
    words = (await guest.run("ip -4 -brief address show dev cable7")).stdout.split()
    return [word for word in words if "/" in word]


async def settled(guest: Guest, expected: str = "") -> list[str]:
    """Return the addresses once there are some, or once the expected one is the only one."""
    with trio.fail_after(100):
        while True:
            present = await addresses(guest)
            if (present == [expected]) if expected else present:
                return present
            await trio.sleep(0.5)  # another computer, in effect: nothing reports changes


async def manager_of(device: Device) -> str:
    status = await device.call("status")
    return str(next(entry["manager"] for entry in status["interfaces"] if entry["name"] == "cable7"))


@pytest.mark.parametrize("manager", MANAGERS, ids=("networkd", "netplan", "ifupdown", "dhcpcd"))
async def test_an_interface_is_left_alone_taken_over_and_given_back(
    guest: Guest, cable: None, manager: Manager
) -> None:
    for path, text in manager.files.items():
        await guest.run(f"mkdir -p {os.path.dirname(path)}")
        await guest.write(path, text)
    await guest.run(manager.start)
    try:
        before = await settled(guest)
        async with running(guest, configured=True) as device:
            try:
                await device.mode("online", 15)
            except trio.TooSlowError:
                print(await device.call("status"), (await guest.run("ip route; ip address")).stdout)
                raise
            assert await manager_of(device) == manager.name
            await trio.sleep(5)
            assert await addresses(guest) == before
            print(f"{manager.name}: nothing was asked for, and {before} stays")

            began = trio.current_time()
            asked: dict[str, Any] = {
                "type": "wired",
                "interface": "cable7",
                "ipv4_address": STATIC,
                "ipv4_gateway": ROUTER,
            }
            await device.send(settings={"additional_networks": {"office": asked}})
            await settled(guest, STATIC)
            assert await manager_of(device) == "machine-agent"
            assert (await guest.run(f"ping -c 1 -W 5 {ROUTER}", check=False)).returncode == 0
            await trio.sleep(5)
            assert await addresses(guest) == [STATIC], "the former manager configures it too"
            print(f"{manager.name}: taken over after {trio.current_time() - began - 5:.1f} s")

            began = trio.current_time()
            await device.send(settings={"advanced_settings": {"disable_network_configuration": True}})
            await settled(guest, before[0])
            assert await manager_of(device) == manager.name
            print(f"{manager.name}: given back after {trio.current_time() - began:.1f} s")
    finally:
        await guest.run(manager.stop, check=False)
        await guest.run(["rm", "-f", *manager.files])
