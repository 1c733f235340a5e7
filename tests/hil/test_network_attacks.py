"""An attacker in the neighborhood: it joins the hotspot of a configured device, or imitates its network."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import pytest
import trio

from tests.hil.image.contents import SOURCE
from tests.hil.rig.air import Air, FetchError, Phone, Response
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant, PlantError
from tests.hil.test_network import HOME, PASSPHRASE, PORTAL, Device, running, settings_of, until_runs
from tests.scope import RIG, on_demand

pytestmark = on_demand(240, RIG)

EVIL: Final = json.dumps({"cloud": {"id": "part", "secret": "evil", "app_address": "http://evil.example"}})
MAX_GROWTH: Final = 16 * 1024
"""KiB that the memory of the service may grow by during all attacks."""
SCRIPT: Final = "<script>alert(1)</script>"


@pytest.fixture
def time_limit() -> float:
    """Return the seconds of a test of this module."""
    return 560.0


class Attacker:
    """An attacker that has joined the hotspot, as somebody who has read its password from the label."""

    def __init__(self, phone: Phone, interface: str) -> None:
        self.phone, self.interface = phone, interface
        self.count = 0

    def row(self, what: str, outcome: object) -> None:
        """Print a row of the table in docs/design/netmgr-attacks.md."""
        self.count += 1
        print(f"ROW {self.count} | {what} | {outcome}")

    async def attack(self, name: str, limit: float = 120.0) -> str:
        """Run an attack of tests/hil/guest/attacks.py; return its outcome."""
        command = ["python3", "-I", "-S", f"{SOURCE}/tests/hil/guest/attacks.py", name, self.interface]
        return str((await self.phone.place.run(command, limit=limit)).stdout.strip())

    async def save(self, form: Mapping[str, str], **headers: str) -> Response | str:
        """Post the form of the portal; return the answer, or why there was none."""
        try:
            return await self.phone.post(f"{PORTAL}save", {"viamconfig": EVIL, **form}, **headers)
        except FetchError as error:
            return str(error).rpartition(": ")[2]

    async def token(self) -> str:
        match = re.search(r'name="token" value="([^"]+)"', (await self.phone.get(PORTAL)).body)
        assert match is not None
        return match[1]


async def stored(device: Device) -> bool:
    """Return whether credentials were stored since the last question."""
    await device.send(call="status")
    await device.news("answer")
    return any("credentials" in entry for entry in device._early)


async def memory(guest: Guest, device: Device) -> int:
    """Return the memory of the service in KiB."""
    assert device.process.pid > 0
    return int((await guest.run(f"grep VmRSS /proc/{device.process.pid}/status")).stdout.split()[1])


@asynccontextmanager
async def attacked(guest: Guest, plant: Plant) -> AsyncIterator[tuple[Device, Attacker, Air]]:
    """Provide a configured device whose hotspot runs, and an attacker in it."""
    await guest.run("modprobe ipv6")  # a namespace has IPv6 only if the kernel had it before
    air = await plant.air(radios=5)
    async with running(guest, configured=True, settings=settings_of()) as device:
        await device.send(force=True)
        await device.mode("hotspot")
        ssid, password = await until_runs(device)
        phone = await air.phone()
        with pytest.raises(PlantError):
            await phone.join(ssid, "guess guess", limit=30)
        await phone.join(ssid, password)
        interface = (await phone.place.run("ls /sys/class/net")).stdout.split()
        yield device, Attacker(phone, next(name for name in interface if name.startswith("wlan"))), air


async def test_attacks_in_the_hotspot(guest: Guest, plant: Plant) -> None:
    async with attacked(guest, plant) as (device, attacker, air):
        attacker.row("join the hotspot with a guessed password", "refused by WPA2")
        secrets = await device.call("status")
        password, secret = secrets["hotspot"]["password"], secrets["device_secret"]
        before = await memory(guest, device)

        texts = [(await attacker.phone.get(f"{PORTAL}{path}")).body for path in ("", "networks", "captive-portal/api")]
        assert not any(word in text for text in texts for word in (password, secret, PASSPHRASE))
        attacker.row("read a password or secret from the pages", "none is in them")
        answer = await attacker.phone.get(PORTAL, Host="evil.example")
        assert 'name="token"' not in answer.body
        attacker.row("read the token from another host name (DNS rebinding)", f"{answer.status}, without a form")
        answer = await attacker.phone.get(f"{PORTAL}save?viamconfig=evil&token={await attacker.token()}")
        assert answer.status in (400, 404, 405)
        attacker.row("post by GET", answer.status)

        token = await attacker.token()
        forms: dict[str, tuple[dict[str, str], dict[str, str]]] = {
            "without a token": ({}, {}),
            "with an invented token": ({"token": "1.x"}, {}),
            "from a page of another site": ({"token": token}, {"Origin": "http://evil.example"}),
            "for another host": ({"token": token}, {"Host": "evil.example"}),
            "without a proof": ({"token": token}, {}),
            "with a wrong proof": ({"token": token, "proof": "guess"}, {}),
            "with the password of the hotspot as proof": ({"token": token, "proof": password}, {}),
            "of 200 KB": ({"token": token, "proof": "x" * 200_000}, {}),
            "with 2,000 fields": ({"token": token, **{f"f{n}": "" for n in range(2000)}}, {}),
            "with a header of 200 KB": ({"token": token}, {"X-Large": "x" * 200_000}),
        }
        for what, (form, headers) in forms.items():
            result = await attacker.save(form, **headers)
            status = result.status if isinstance(result, Response) else result
            assert not await stored(device), what
            assert (
                not isinstance(result, Response)
                or result.status >= 400
                or "error" in result.body.lower()
                or ("evil" not in result.headers.get("location", ""))
            )
            attacker.row(f"credentials of another cloud {what}", status)
        statuses = []
        for number in range(40):
            result = await attacker.save({"token": token, "proof": f"guess{number}"})
            statuses.append(result.status if isinstance(result, Response) else result)
        assert not await stored(device)
        attacker.row("40 guesses of the secret of the device", f"refused; the last answers are {statuses[-1]}")

        for name, what in (
            ("http_garbage", "eight requests that are not HTTP, or endless"),
            ("dns_garbage", "3,000 random datagrams to the name server"),
            ("dhcp_garbage", "2,000 random datagrams to the DHCP server"),
        ):
            outcome = await attacker.attack(name)
            assert (await attacker.phone.get(PORTAL)).status == 200
            attacker.row(what, f"{outcome}; the portal answers")
        factor = float(await attacker.attack("dns_size"))
        assert factor < 3
        attacker.row("use the name server to amplify", f"the largest answer is {factor} times its question")
        name = attacker.interface
        await attacker.phone.place.run(
            f"echo 0 >/proc/sys/net/ipv6/conf/{name}/disable_ipv6; ip address replace fe80::666/64 dev {name} nodad"
        )
        await attacker.attack("advertisement")
        routes = (await guest.run("ip -6 route show default")).stdout
        assert "2001:db8" not in routes
        assert "via fe80" not in routes
        attacker.row("announce itself as the IPv6 router", "no route")
        opened = await attacker.attack("ports", 400)
        assert set(opened.split()) <= {"53", "80", "4772"}, opened
        attacker.row("find other services of the device", f"only the ports {opened} accept connections")
        forwards = (await guest.run("cat /proc/sys/net/ipv4/ip_forward")).stdout.strip()
        assert forwards == "0"
        attacker.row("reach the internet through the device", "it does not forward packets")

        command = ["python3", "-I", "-S", f"{SOURCE}/tests/hil/guest/attacks.py", "connections", attacker.interface]
        flood = await attacker.phone.place.start(command)
        await flood.wait_output("opened")
        honest = await air.phone()
        await honest.join(secrets["hotspot"]["ssid"], password)
        assert (await honest.get(PORTAL)).status == 200
        attacker.row("keep 500 connections open", f"{flood.stdout.strip()}; another phone is served")
        await flood.close_input()
        await flood.wait()
        await attacker.attack("dhcp_exhaustion")
        await honest.leave()
        began = trio.current_time()
        await until_joined(honest, secrets["hotspot"]["ssid"], password)
        attacker.row(
            "request 600 addresses",
            f"a phone that had an address gets it again {trio.current_time() - began:.0f} s later",
        )

        grown = await memory(guest, device) - before
        assert before > 0
        assert grown < MAX_GROWTH, f"{grown} KiB"
        attacker.row("fill the memory, with all of this", f"it grew by {max(grown, 0)} KiB")


async def until_joined(phone: Phone, ssid: str, password: str) -> None:
    """Join the hotspot, with as many attempts as a person makes."""
    for attempt in range(4):
        try:
            await phone.join(ssid, password, limit=40)
        except PlantError:
            if attempt == 3:
                raise
        else:
            return


async def test_imitations(guest: Guest, plant: Plant) -> None:
    air = await plant.air(radios=5)
    evil = await air.access_point(HOME, "another horse")
    stranger = await air.access_point(SCRIPT, security="open", channel=6)
    async with running(
        guest, configured=True, settings=settings_of(offline_before_starting_hotspot_minutes=1)
    ) as device:
        await device.mode("hotspot", 200)
        assert await evil.stations() == []
        print("ROW | an access point with the name of a known network and another password | not joined")
        ssid, password = await until_runs(device)
        phone = await air.phone()
        await phone.join(ssid, password)
        page = await phone.get(PORTAL)
        assert SCRIPT not in page.body
        print("ROW | an access point named as a script | shown as text")
        assert await stranger.stations() == []
        print("ROW | an open access point with another name | not joined")
        await phone.leave()
        await evil.down()
        home = await air.access_point(HOME, PASSPHRASE, channel=11)
    async with running(guest, "/tmp/other", configured=True, settings=settings_of()) as device:
        await device.mode("online", 200)
        assert len(await home.stations()) == 1
        for _ in range(3):
            await home.down(says_goodbye=True)
            await device.mode("searching", 100)
            await home.up()
            await device.mode("online", 200)
        print("ROW | the access point is taken down three times, with deauthentication | online again each time")
