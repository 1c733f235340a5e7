"""Wifi goes on while the agent is restarted, killed and updated: pings of the router are answered all the time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import trio

from agent.layout import AGENT, PROGRAMS, SERVER
from tests.hil.agent.device import Device, joined
from tests.hil.agent.machine import agent_machine
from tests.hil.agent.releases import write
from tests.hil.rig.air import Air
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant
from tests.hil.rig.vm import VirtualMachine
from tests.scope import RIG, on_demand

HOME, PASSPHRASE = "home", "correct horse"
INTERVAL = 0.1
"""Seconds between pings."""
LONGEST = 5
"""Pings in a row that may be lost: a scan of all channels interrupts the traffic for a moment."""

pytestmark = on_demand(60, RIG)


@pytest.fixture(scope="module")
def machine(_source: str) -> Iterator[VirtualMachine]:
    """Yield a machine with systemd, whose /opt/machine is free."""
    with agent_machine(_source) as machine:
        yield machine


async def process(guest: Guest, unit: str) -> str:
    return (await guest.run(["systemctl", "show", "-P", "MainPID", unit])).stdout.strip()


async def address_of(device: Device, interface: str) -> str:
    """Return the IPv4 address of an interface, once it has one."""
    with trio.fail_after(120):
        while True:
            text = (await device.guest.run(f"ip -4 -br address show dev {interface} || true")).stdout
            if match := re.search(r"\d+\.\d+\.\d+\.\d+", text):
                return match[0]
            await trio.sleep(0.5)  # another computer, in effect: nothing reports changes


def lost_in_a_row(output: str) -> int:
    """Return the largest number of pings in a row without an answer."""
    numbers = [int(number) for number in re.findall(r"icmp_seq=(\d+)", output)]
    assert len(numbers) > 10, output
    return max(after - before - 1 for before, after in pairwise(numbers))


async def test_wifi_goes_on_without_the_agent(guest: Guest, plant: Plant, tmp_path: Path) -> None:
    air: Air = await plant.air(radios=2)
    router = await air.access_point(HOME, PASSPHRASE)
    home = {"type": "wifi", "ssid": HOME, "psk": PASSPHRASE}
    async with joined(guest, tmp_path) as device:
        await device.save({"agent": {"additional_networks": {"home": home}}})
        await device.install(*[write(tmp_path, program, "1.0.0") for program in PROGRAMS])
        await device.settled(SERVER, "1.0.0")
        address = await address_of(device, air.devices[0])
        units = (await guest.run("systemctl list-units --plain --no-legend 'machine-wifi-*'")).stdout
        unit = units.split()[0]
        supplicant = await process(guest, unit)
        [path] = await device.put(write(tmp_path, AGENT, "2.0.0"))

        ping = await router.place.start(f"ping -i {INTERVAL} {address}")
        await trio.sleep(3)
        await guest.run(["systemctl", "restart", AGENT])
        await device.until(lambda status: status["server"].get("serving"))
        await trio.sleep(5)
        await guest.run(f"kill -9 {await process(guest, f'{AGENT}.service')}")
        await device.until(lambda status: status["server"].get("serving"))
        await trio.sleep(5)
        await device.update(AGENT, path)
        await device.settled(AGENT, "2.0.0")
        await trio.sleep(5)
        await ping.signal(2)
        await ping.wait()
        print(ping.stdout[-300:])
        lost = lost_in_a_row(ping.stdout)
        print(f"at most {lost} pings in a row were lost, {lost * INTERVAL:.1f} s")
        assert lost <= LONGEST
        assert await process(guest, unit) == supplicant
        assert await address_of(device, air.devices[0]) == address

        await guest.run("machine-agent --uninstall")
        assert (await guest.run("systemctl list-units --plain --no-legend 'machine-wifi-*'")).stdout == ""
        assert (await guest.run("pgrep -x wpa_supplicant || true")).stdout == ""
