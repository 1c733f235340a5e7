"""A device gets online by itself or with a phone: simulated radios, real hostapd and DHCP, a phone in its namespace."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from tests.hil.rig.air import Air, Phone
from tests.hil.rig.channel import GuestProcess
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant
from tests.scope import RIG, on_demand

HOME, PASSPHRASE = "home", "correct horse"
PORTAL = "http://10.42.0.1/"
CREDENTIALS = json.dumps({"cloud": {"id": "part", "secret": "s3cret", "app_address": "http://cloud.example"}})
LIMIT = 120.0


class Device:
    """Network management in the guest."""

    def __init__(self, process: GuestProcess) -> None:
        self.process = process
        self._early: list[dict[str, Any]] = []

    async def send(self, **request: Any) -> None:
        await self.process.write(json.dumps(request) + "\n")

    async def news(self, *kinds: str, limit: float = LIMIT) -> dict[str, Any]:
        """Return the next line of one of these kinds; other lines are kept."""
        for number, entry in enumerate(self._early):
            if entry.keys() & set(kinds):
                return self._early.pop(number)
        with trio.fail_after(limit):
            async for line in self.process.lines:
                if not line.startswith("{"):
                    print(line)
                    continue
                entry = json.loads(line)
                if entry.keys() & set(kinds):
                    return entry
                self._early.append(entry)
        raise AssertionError(self.process.output)

    async def mode(self, wanted: str, limit: float = LIMIT) -> float:
        """Wait for a mode; return the seconds since the start of the program."""
        with trio.fail_after(limit):
            while True:
                entry = await self.news("mode", limit=limit)
                if entry["mode"] == wanted:
                    return float(entry["at"])

    async def call(self, name: str, **arguments: Any) -> Any:
        await self.send(call=name, **arguments)
        entry = await self.news("answer", "error")
        assert "answer" in entry, entry
        return entry["answer"][-1]

    async def hotspot(self) -> tuple[str, str]:
        """Return SSID and password of the hotspot."""
        hotspot = (await self.call("status"))["hotspot"]
        return hotspot["ssid"], hotspot["password"]


async def until_runs(device: Device) -> tuple[str, str]:
    """Wait until the hotspot runs; return its SSID and password."""
    with trio.fail_after(LIMIT):
        while not (await device.call("status"))["hotspot"]["runs_on"]:  # noqa: ASYNC110 - another computer, in effect
            await trio.sleep(0.5)
    return await device.hotspot()


@asynccontextmanager
async def running(guest: Guest, folder: str = "/tmp/network", **request: Any) -> AsyncIterator[Device]:
    """Run network management while the context is open; its log is printed at the end."""
    await guest.run(f"mkdir -p {folder}")
    device = Device(await guest.start(["python3", "-m", "tests.hil.guest.network", folder]))
    if request:
        await device.send(**request)
    try:
        yield device
    finally:
        print(device.process.stderr)


async def fill(phone: Phone, **fields: str) -> None:
    """Fill the form of the portal in, and send it."""
    page = await phone.get(PORTAL)
    token = re.search(r'name="token" value="([^"]+)"', page.body)
    assert token is not None, page.body
    answer = await phone.post(f"{PORTAL}save", {"token": token[1], **fields}, Origin=PORTAL.rstrip("/"))
    assert answer.status in (200, 303), answer.body


async def test_a_new_device_gets_online_with_a_phone(guest: Guest, plant: Plant) -> None:
    air: Air = await plant.air(radios=3)
    await air.access_point(HOME, PASSPHRASE)
    async with running(guest) as device:
        print(f"hotspot after {await device.mode('hotspot')} s")
        ssid, password = await until_runs(device)
        assert ssid == "machine-setup-rover"
        phone = await air.phone()
        lease = await phone.join(ssid, password)
        assert lease["router"] == "10.42.0.1"
        print("devices conclude", await phone.check())
        assert set((await phone.check()).values()) == {"portal"}
        page = await phone.get(PORTAL)
        assert "rover" in page.body
        await fill(phone, ssid=HOME, password="wrong horse", viamconfig=CREDENTIALS)
        assert json.loads((await device.news("credentials"))["credentials"]) == json.loads(CREDENTIALS)
        print(f"joining after {await device.mode('testing')} s")
        print(f"the hotspot returned after {await device.mode('hotspot')} s")
        await phone.leave()
        await phone.join(ssid, password)
        assert "password is wrong" in (await phone.get(PORTAL)).body
        await fill(phone, ssid=HOME, password=PASSPHRASE)
        print(f"online after {await device.mode('online')} s")
        status = await device.call("status")
        (interface,) = [entry for entry in status["interfaces"] if entry["name"] == air.devices[0]]
        assert interface["ssid"] == HOME
        assert (await guest.run("ping -c 1 -W 5 203.0.113.1", check=False)).returncode == 0


def settings_of(**network_configuration: Any) -> dict[str, Any]:
    """Return a configuration with two wifi networks, of which `home` is preferred."""
    return {
        "network_configuration": network_configuration,
        "additional_networks": {
            HOME: {"type": "wifi", "ssid": HOME, "psk": PASSPHRASE, "priority": 5},
            "garage": {"type": "wifi", "ssid": "garage", "psk": PASSPHRASE},
        },
    }


@on_demand(110, RIG)
async def test_known_networks_are_lost_and_found_by_priority(guest: Guest, plant: Plant) -> None:
    air: Air = await plant.air(radios=3)
    home = await air.access_point(HOME, PASSPHRASE)
    garage = await air.access_point("garage", PASSPHRASE, channel=6)
    settings = settings_of(offline_before_starting_hotspot_minutes=1)
    async with running(guest, configured=True, settings=settings) as device:
        print(f"online after {await device.mode('online')} s")
        assert len(await home.stations()) == 1
        before = (await device.call("status"))["interfaces"]
        await home.down()
        await device.mode("searching")
        print(f"online in the other network after {await device.mode('online')} s")
        assert len(await garage.stations()) == 1
        explained = await device.call("explain")
        assert "No access point with this name answered" in json.dumps(explained)
        await garage.down()
        await device.mode("searching")
        print(f"hotspot after {await device.mode('hotspot')} s")
        await home.up()
        print(f"online again after {await device.mode('online')} s")
        after = (await device.call("status"))["interfaces"]
        wlan = air.devices[0]
        addresses = [next(i["addresses"] for i in value if i["name"] == wlan) for value in (before, after)]
        assert addresses[0] == addresses[1], "the remembered address was requested"


async def test_the_hotspot_of_a_configured_device_resists_takeover(guest: Guest, plant: Plant) -> None:
    air: Air = await plant.air(radios=2)
    other = json.dumps({"cloud": {"id": "part", "secret": "evil", "app_address": "http://evil.example"}})
    async with running(guest, configured=True, settings=settings_of()) as device:
        await device.send(force=True)
        await device.mode("hotspot")
        ssid, password = await until_runs(device)
        secret = (await device.call("status"))["device_secret"]
        phone = await air.phone()
        await phone.join(ssid, password)
        page = await phone.get(PORTAL)
        assert password not in page.body
        assert secret not in page.body
        assert PASSPHRASE not in page.body
        token = re.search(r'name="token" value="([^"]+)"', page.body)
        assert token is not None
        attempts = {
            "without a token": ({"viamconfig": other}, {}),
            "with a token of somebody else": ({"viamconfig": other, "token": "1.x"}, {}),
            "from a page of another site": (
                {"viamconfig": other, "token": token[1]},
                {"Origin": "http://evil.example"},
            ),
            "for another host": ({"viamconfig": other, "token": token[1]}, {"Host": "evil.example"}),
            "without a proof": ({"viamconfig": other, "token": token[1]}, {}),
            "with a wrong proof": ({"viamconfig": other, "token": token[1], "proof": "guess"}, {}),
            "with the password of the hotspot": ({"viamconfig": other, "token": token[1], "proof": password}, {}),
        }
        for what, (form, headers) in attempts.items():
            answer = await phone.post(f"{PORTAL}save", form, **headers)
            print(f"credentials {what}: {answer.status}")
            assert answer.status >= 400 or "evil" not in answer.headers.get("location", ""), what
        await device.send(call="status")
        await device.news("answer")
        assert not any("credentials" in entry for entry in device._early), "credentials were stored"
        form = {"viamconfig": other, "token": token[1], "proof": secret}
        assert (await phone.post(f"{PORTAL}save", form)).status in (200, 303)
        assert "evil" in (await device.news("credentials"))["credentials"], "the secret of the device is a proof"
