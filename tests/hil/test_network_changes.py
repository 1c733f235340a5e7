"""What changes while a device is online: cables, radios, passwords, better networks; and networks of every security."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import trio

from tests.hil.image.contents import SOURCE
from tests.hil.rig.air import Air
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant
from tests.hil.test_network import HOME, PASSPHRASE, PORTAL, Device, fill, until_runs
from tests.hil.test_network_faults import BACKUP, clock, managed, row, settings, until, until_proved, until_said, wifi
from tests.hil.test_wifi_enterprise import FOLDER, HOSTAPD, PASSWORD, SERVER, USERS, certificate, made, private_key
from tests.scope import RIG, on_demand

__all__ = ["clock"]

pytestmark = on_demand(1320, RIG)

INTERNET = "203.0.113.1"


@pytest.fixture
def time_limit() -> float:
    """Return the limit for a test: a wrong password is tried again after ten minutes."""
    return 900.0


async def default(guest: Guest) -> str:
    """Return the interface of the route to the Internet; empty if there is none."""
    answer = (await guest.run(f"ip route get {INTERNET}", check=False)).stdout
    match = re.search(r"dev (\S+)", answer)
    return match[1] if match else ""


async def until_default(guest: Guest, interface: str, limit: float = 60.0) -> None:
    """Wait until an interface has the route to the Internet, and the Internet answers."""
    with trio.fail_after(limit):
        while await default(guest) != interface:  # noqa: ASYNC110 - another computer, in effect
            await trio.sleep(0.2)
    assert (await guest.run(f"ping -c 1 -W 5 {INTERNET}", check=False)).returncode == 0


async def radio(guest: Guest, *words: str) -> None:
    """Unplug or plug a radio."""
    await guest.run(f"cd {SOURCE} && python3 -m tests.hil.guest.radios {' '.join(words)}")


def used(status: Mapping[str, Any], interface: str) -> str:
    """Return the SSID of an interface; empty if it has none."""
    return next((each["ssid"] for each in status["interfaces"] if each["name"] == interface), "")


async def supplicants(guest: Guest) -> int:
    """Return the number of wpa_supplicant processes of the machine."""
    output = (await guest.run("pgrep -fc 'wpa_supplican[t] -g'", check=False)).stdout
    return int(output)


async def enterprise(guest: Guest, air: Air) -> dict[str, Any]:
    """Switch on an access point with EAP; return its network for the configuration."""
    authority = made("the authority")
    server = made(SERVER, authority)
    await guest.run(f"mkdir -p {FOLDER}")
    texts = {"users": USERS, "authority.pem": certificate(authority), "server.pem": certificate(server)}
    for name, text in {**texts, "server.key": private_key(server)}.items():
        await guest.write(f"{FOLDER}/{name}", text)
    await air.access_point(HOME, hostapd=HOSTAPD)
    account = {"method": "peap", "identity": "person", "password": PASSWORD, "server_name": SERVER}
    return {"type": "wifi", "ssid": HOME, "enterprise": {**account, "ca_certificate": certificate(authority)}}


@pytest.mark.parametrize("security", ["WPA3", "hidden", "PEAP", "PEAP with a clock in 1970"])
async def test_a_network_of_every_security(
    guest: Guest, plant: Plant, clock: Callable[[str], Any], security: str
) -> None:
    air: Air = await plant.air(radios=2)
    network = wifi(HOME, hidden=security == "hidden")
    if security.startswith("PEAP"):
        network = await enterprise(guest, air)
    else:
        kind: Any = "wpa3" if security == "WPA3" else ""
        await air.access_point(HOME, PASSPHRASE, security=kind, hidden=security == "hidden")
    if "1970" in security:
        await clock("1970-01-02")
    begin = trio.current_time()
    async with managed(guest, settings({HOME: network})) as device:
        await device.mode("online")
        row(f"{security}: online", begin)
        await until_proved(device, air.devices[0])


async def test_the_hotspot_stays_on_a_second_radio(guest: Guest, plant: Plant) -> None:
    air: Air = await plant.air(radios=4, machine=2)
    await air.access_point(HOME, PASSPHRASE)
    async with managed(guest, {}, configured=False) as device:
        ssid, password = await until_runs(device)
        phone = await air.phone()
        await phone.join(ssid, password)
        ping = await phone.place.start("ping -i 0.2 10.42.0.1")
        begin = trio.current_time()
        await fill(phone, ssid=HOME, password=PASSPHRASE)
        await until(device, "status", lambda status: any(each["ssid"] == HOME for each in status["interfaces"]), 400)
        row("two radios: joined on one, while the hotspot runs on the other", begin)
        status = await device.call("status")
        assert status["hotspot"]["runs_on"] == air.devices[1]
        assert used(status, air.devices[0]) == HOME
        assert (await phone.get(PORTAL)).status == 200, "the phone is still connected"
        await ping.signal(2)
        await ping.wait()
        summary = next(line for line in ping.stdout.splitlines() if "packets transmitted" in line)
        print(f"ROW two radios: the phone pings the hotspot meanwhile: {summary}")


def wired(interface: str, metric: int = 0) -> dict[str, Any]:
    """Return a wired network of the configuration."""
    return {"type": "wired", "interface": interface, "ipv4_route_metric": metric}


async def test_two_cables_and_wifi(guest: Guest, plant: Plant) -> None:
    air: Air = await plant.air(radios=2)
    await air.access_point(HOME, PASSPHRASE)
    first, second = [await plant.make("tests.hil.guest.cables:Cable", number) for number in (0, 1)]
    networks = {"first": wired("cable0"), "second": wired("cable1", 200), HOME: wifi(HOME)}
    (wlan,) = air.devices

    async def step(what: str, interface: str) -> None:
        begin = trio.current_time()
        await until_default(guest, interface)
        row(what, begin)

    async with managed(guest, settings(networks)) as device:
        await step("two cables and wifi: the default route is that of the metric 100", "cable0")
        routes: list[tuple[str, str]] = []
        with trio.fail_after(60):
            while routes != [("cable0", "100"), ("cable1", "200"), (wlan, "600")]:
                routes = re.findall(r"dev (\S+).* metric (\d+)", (await guest.run("ip -4 route show default")).stdout)
                await trio.sleep(0.5)  # another computer, in effect: nothing reports changes
        await first.call("pull")
        await step("the cable of the metric 100 is pulled: the one of the metric 200", "cable1")
        await second.call("pull")
        await step("both cables are pulled: wifi", wlan)
        await second.call("plug")
        await step("the cable of the metric 200 is plugged in: back from wifi", "cable1")
        await first.call("plug")
        await step("the cable of the metric 100 is plugged in: back", "cable0")
        networks["second"] = wired("cable1", 50)
        await device.send(settings=settings(networks))
        await step("the configuration changes the metric 200 to 50", "cable1")
        await device.send(settings=settings({**networks, "other": {**wired("cable1", 300), "priority": 5}}))
        await step("a wired network of a higher priority has the metric 300", "cable0")
        assert not (await device.call("status"))["problems"]


async def test_a_radio_is_unplugged_while_connected(guest: Guest, plant: Plant) -> None:
    air: Air = await plant.air(radios=2)
    home = await air.access_point(HOME, PASSPHRASE)
    (wlan,) = air.devices
    async with managed(guest, settings({HOME: wifi(HOME)})) as device:
        await device.mode("online")
        for count in ("first", "second"):
            begin = trio.current_time()
            await radio(guest, "unplug", wlan)
            await device.mode("searching")
            row(f"radio unplugged while connected ({count} time): noticed", begin)
            begin = trio.current_time()
            await radio(guest, "plug")
            await device.mode("online")
            row(f"radio plugged in again ({count} time): online", begin)
            assert await supplicants(guest) == 1
        assert len(await home.stations()) >= 1
        assert not (await device.call("status"))["problems"]


async def test_a_radio_is_unplugged_while_the_hotspot_runs(guest: Guest, plant: Plant) -> None:
    air: Air = await plant.air(radios=2)
    async with managed(guest, {}, configured=False) as device:
        await until_runs(device)
        await device.mode("hotspot")
        begin = trio.current_time()
        await radio(guest, "unplug", air.devices[0])
        await device.mode("searching")
        assert not (await device.call("status"))["hotspot"]["runs_on"]
        row("radio unplugged while the hotspot runs: noticed", begin)
        begin = trio.current_time()
        await radio(guest, "plug")
        await device.mode("hotspot")
        ssid, password = await until_runs(device)
        row("radio plugged in again: the hotspot runs", begin)
        phone = await air.phone()
        await phone.join(ssid, password)
        assert (await phone.get(PORTAL)).status == 200
        assert await supplicants(guest) == 1


async def test_the_second_radio_replaces_an_unplugged_one(guest: Guest, plant: Plant) -> None:
    air: Air = await plant.air(radios=3, machine=2)
    await air.access_point(HOME, PASSPHRASE)
    first, second = air.devices
    async with managed(guest, settings({HOME: wifi(HOME)})) as device:
        await device.mode("online")
        assert used(await device.call("status"), first) == HOME
        begin = trio.current_time()
        await radio(guest, "unplug", first)
        await device.mode("searching")
        await device.mode("online")
        assert used(await device.call("status"), second) == HOME
        row("radio unplugged while connected: online on the second radio", begin)


async def test_roaming_to_a_better_priority(guest: Guest, plant: Plant) -> None:
    air: Air = await plant.air(radios=3)
    await air.access_point(BACKUP, PASSPHRASE, channel=6)
    home = await air.access_point(HOME, PASSPHRASE)
    await home.down()
    (wlan,) = air.devices
    async with managed(guest, settings({HOME: wifi(HOME, 5), BACKUP: wifi(BACKUP)})) as device:
        await device.mode("online")
        assert used(await device.call("status"), wlan) == BACKUP
        begin = trio.current_time()
        await home.up()
        await until(device, "status", lambda status: used(status, wlan) == HOME, 400)
        await until_proved(device, wlan)
        row("a network of a higher priority appears: joined", begin)


async def test_a_password_is_changed_and_back(guest: Guest, plant: Plant) -> None:
    air: Air = await plant.air(radios=2)
    home = await air.access_point(HOME, PASSPHRASE)
    async with managed(guest, settings({HOME: wifi(HOME)})) as device:
        await device.mode("online")
        begin = await password(device, home, "another horse")
        await until_said(device, HOME, "password is wrong")
        row("the router has a new password: reported as wrong", begin)
        begin = trio.current_time()
        await device.send(settings=settings({HOME: wifi(HOME, psk="another horse")}))
        await device.mode("online")
        row("the configuration gets the new password: online", begin)
        begin = await password(device, home, PASSPHRASE)
        await until_said(device, HOME, "password is wrong")
        row("the router returns to the former password: reported as wrong", begin)
        begin = trio.current_time()
        await device.send(settings=settings({HOME: wifi(HOME)}))
        await device.mode("online")
        row("the configuration returns to the former password: online", begin)


async def test_a_password_returns_at_the_router(guest: Guest, plant: Plant) -> None:
    air: Air = await plant.air(radios=2)
    home = await air.access_point(HOME, PASSPHRASE)
    document = settings({HOME: wifi(HOME)}, offline_before_starting_hotspot_minutes=60)
    async with managed(guest, document) as device:
        await device.mode("online")
        begin = await password(device, home, "another horse")
        await until_said(device, HOME, "password is wrong")
        row("the router has a new password: reported as wrong", begin)
        await home.down(says_goodbye=True)
        await home.up(passphrase=PASSPHRASE)
        begin = trio.current_time()
        await device.mode("online", limit=700)
        row("the router returns to the password of the configuration: online", begin)


async def password(device: Device, home: Any, passphrase: str) -> float:
    """Change the password of the router, and return when it runs again."""
    await home.down(says_goodbye=True)
    await home.up(passphrase=passphrase)
    await device.mode("searching")
    return trio.current_time()
