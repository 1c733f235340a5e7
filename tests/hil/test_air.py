"""Simulated radios: the machine's NetworkManager with home routers, and a phone with the machine's hotspot.

These are tests of the rig; how a machine is brought online is tested with it.
"""

from __future__ import annotations

import pytest
import trio

from tests.hil.guest.probes import PROBES
from tests.hil.rig.air import FetchError
from tests.hil.rig.guest import Completed, Guest
from tests.hil.rig.plant import Plant, PlantError
from tests.scope import RIG, on_demand

pytestmark = pytest.mark.systemd

HOME, PASSPHRASE = "home", "correct horse"
HOTSPOT = "machine-setup"
HOTSPOT_ADDRESS = "10.42.0.1"  # NetworkManager's default
CHANNEL = {"wifi.band": "bg", "wifi.channel": "6"}  # by default it might select one that no country allows
LIMIT = 120.0
PAGE = "Which network?"

LINK = """
import pathlib, socket
state, last = pathlib.Path("/sys/class/net/wlan0/operstate"), "up"
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
    link.bind((0, 1))  # RTMGRP_LINK
    print("watching")
    while link.recv(65536):
        if ((now := state.read_text().strip()) == "up") != (last == "up"):
            last = now
            print("up again" if now == "up" else "lost")
"""
"""Print "lost" and "up again" when the kernel reports it of the radio's link."""

PORTAL = f"""
import http.server, urllib.parse

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply("{PAGE}")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.reply("joining " + urllib.parse.parse_qs(body)["ssid"][0])

    def reply(self, text):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

server = http.server.ThreadingHTTPServer(("{HOTSPOT_ADDRESS}", 80), Handler)
print("serving", flush=True)
server.serve_forever()
"""


async def know(guest: Guest, name: str, ssid: str, passphrase: str = "", **settings: str) -> None:
    """Add a network to NetworkManager, without joining it."""
    extra: dict[str, str] = {"wifi-sec.key-mgmt": "wpa-psk", "wifi-sec.psk": passphrase} if passphrase else {}
    words = [word for pair in {**extra, **settings}.items() for word in pair]
    await guest.run(
        ["nmcli", "connection", "add", "type", "wifi", "ifname", "wlan0", "con-name", name, "ssid", ssid, *words]
    )


async def join(guest: Guest, name: str, *, check: bool = True) -> Completed:
    """Make NetworkManager join a saved network."""
    return await guest.run(["nmcli", "--wait", "90", "connection", "up", name], limit=LIMIT, check=check)


async def online(guest: Guest) -> bool:
    """Return whether a program on the machine reaches the Internet, including name resolution."""
    probe = PROBES["networkmanager"]
    program = f"import urllib.request; print(urllib.request.urlopen('{probe.url}', timeout=10).read().decode())"
    done = await guest.run(["python3", "-c", program], check=False)
    return done.stdout.strip() == probe.body.strip()


async def connectivity(guest: Guest) -> str:
    """Return NetworkManager's conclusion about the Internet: full, limited, portal or none."""
    return (await guest.run("nmcli networking connectivity check")).stdout.strip()


@on_demand(30, RIG)
async def test_the_machine_joins_and_rejoins_after_a_router_restart(guest: Guest, plant: Plant) -> None:
    air = await plant.air(radios=2)
    point = await air.access_point(HOME, PASSPHRASE)
    await air.network_manager()
    await know(guest, HOME, HOME, PASSPHRASE, **{"connection.autoconnect-retries": "0"})  # 0: as often as it takes
    await join(guest, HOME)
    assert len(await point.stations()) == 1
    assert await online(guest)
    assert await connectivity(guest) == "full"
    link = await guest.start(["python3", "-uc", LINK])
    await link.wait_output("watching")
    await point.down(says_goodbye=True)
    with trio.fail_after(LIMIT):
        await link.wait_output("lost")
    assert not await online(guest)
    await point.up()
    with trio.fail_after(LIMIT):
        await link.wait_output("up again")
    await guest.run("nm-online -q -t 100", limit=LIMIT)
    assert await online(guest)


async def test_a_router_without_power_does_not_answer(guest: Guest, plant: Plant) -> None:
    air = await plant.air(radios=3)
    point = await air.access_point(HOME, PASSPHRASE)
    phone = await air.phone()
    await phone.join(HOME, PASSPHRASE)
    await phone.get(PROBES["apple"].url)
    await point.down()
    with pytest.raises(FetchError):
        await phone.get(PROBES["apple"].url)
    assert HOME not in [network["ssid"] for network in await phone.scan()]


async def test_a_wrong_passphrase_is_reported(guest: Guest, plant: Plant) -> None:
    air = await plant.air(radios=2)
    point = await air.access_point(HOME, PASSPHRASE, hidden=True)
    await air.network_manager()
    await know(guest, HOME, HOME, "wrong horse", **{"wifi.hidden": "yes"})
    refused = await join(guest, HOME, check=False)
    assert refused.returncode
    assert "Secrets were required" in refused.output
    assert await point.stations() == []
    await guest.run(["nmcli", "connection", "modify", HOME, "wifi-sec.psk", PASSPHRASE])
    await join(guest, HOME)
    assert await online(guest)


async def test_a_router_may_have_no_internet_or_a_portal(guest: Guest, plant: Plant) -> None:
    air = await plant.air(radios=2)
    point = await air.access_point(HOME, uplink="none")
    await air.network_manager()
    await know(guest, HOME, HOME)
    await join(guest, HOME)
    assert await connectivity(guest) == "limited"
    assert not await online(guest)
    await point.uplink("portal")
    assert await connectivity(guest) == "portal"
    assert not await online(guest)
    await point.uplink("internet")
    assert await connectivity(guest) == "full"
    assert await online(guest)


@pytest.mark.parametrize("passphrase", ["", PASSPHRASE], ids=["open", "wpa2"])
async def test_a_phone_joins_the_hotspot_and_sees_its_page(guest: Guest, plant: Plant, passphrase: str) -> None:
    air = await plant.air(radios=2)
    await air.network_manager()
    # Like a captive portal: every name resolves to the machine, and option 114 (RFC 8910) contains the page's address.
    lines = f"address=/#/{HOTSPOT_ADDRESS}\ndhcp-option=114,http://machine.setup/\n"
    await guest.run("mkdir -p /etc/NetworkManager/dnsmasq-shared.d")
    await guest.write("/etc/NetworkManager/dnsmasq-shared.d/setup.conf", lines)
    await know(guest, "hotspot", HOTSPOT, passphrase, **{"wifi.mode": "ap", "ipv4.method": "shared"}, **CHANNEL)
    await join(guest, "hotspot")
    portal = await guest.start(["python3", "-c", PORTAL])
    await portal.wait_output("serving")

    phone = await air.phone()
    assert HOTSPOT in [network["ssid"] for network in await phone.scan()]
    if passphrase:
        with pytest.raises(PlantError, match="refuses the passphrase"):
            await phone.join(HOTSPOT, "wrong horse")
    lease = await phone.join(HOTSPOT, passphrase)
    assert lease["address"].startswith("10.42.0.")
    assert (lease["dns"], lease["portal"]) == ([HOTSPOT_ADDRESS], "http://machine.setup/")
    page = await phone.get("http://machine.setup/")
    assert (page.status, page.body) == (200, PAGE)
    assert (await phone.post("http://machine.setup/save", {"ssid": "köln & co"})).body == "joining köln & co"
    assert set((await phone.check()).values()) == {"portal"}
    await portal.stop()
    assert set((await phone.check()).values()) == {"none"}
    with pytest.raises(FetchError, match="refused"):
        await phone.get("http://machine.setup/")


async def test_a_phone_tests_the_internet_behind_a_router(guest: Guest, plant: Plant) -> None:
    air = await plant.air(radios=3)
    point = await air.access_point(HOME, PASSPHRASE, security="wpa3")
    phone = await air.phone()
    lease = await phone.join(HOME, PASSPHRASE)
    assert (lease["router"], lease["dns"]) == (point.address, [point.address])
    assert await phone.check() == dict.fromkeys(PROBES, "online")
    await point.uplink("portal")
    assert set((await phone.check()).values()) == {"portal"}
    redirected = await phone.get(PROBES["apple"].url)
    assert redirected.status == 302
    assert (await phone.get(redirected.headers["location"])).body == f"the page of the router {HOME}\n"
    await point.uplink("none")
    assert set((await phone.check()).values()) == {"none"}
    assert (await phone.place.run(["ping", "-c", "1", "-W", "10", point.address])).returncode == 0


async def test_radios_are_strong_weak_or_out_of_reach(guest: Guest, plant: Plant) -> None:
    air = await plant.air(radios=4)
    near = await air.access_point("near")
    far = await air.access_point("far", channel=6)
    phone = await air.phone()
    with pytest.raises(PlantError, match="all 4 radios are in use"):
        await air.phone()
    await far.signal(-75)
    heard = {network["ssid"]: network["signal"] for network in await phone.scan()}
    assert heard["near"] > -40
    assert -80 < heard["far"] < -70
    await near.away()
    await far.signal(-30)
    with trio.fail_after(60):  # the next scan may still list the results of the last one
        while "near" in heard:
            heard = {network["ssid"]: network["signal"] for network in await phone.scan()}
    assert heard["far"] > -40


async def test_an_access_point_without_dhcp_gives_no_address(guest: Guest, plant: Plant) -> None:
    air = await plant.air(radios=3)
    await air.access_point(HOME, dhcp=False)
    phone = await air.phone()
    with pytest.raises(PlantError, match="udhcpc"):
        await phone.join(HOME)
