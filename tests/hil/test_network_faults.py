"""Networks that do not work: login pages, broken DNS, DHCP that is silent or lies, and clocks that are wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
import trio

from tests.hil.guest.air import CLOUD, CLOUD_KEY
from tests.hil.image.contents import SOURCE
from tests.hil.rig.air import AccessPoint, Air, Uplink
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant
from tests.hil.test_network import HOME, PASSPHRASE, Device, running, until_runs
from tests.scope import RIG, on_demand

pytestmark = on_demand(840, RIG)

BACKUP = "backup"
LIMIT = 150.0
ASKED: Final = {"url": f"http://{CLOUD}", "part": "part", "key": CLOUD_KEY}


@pytest.fixture
def time_limit() -> float:
    """Return the limit for a test: networks are given up after a minute."""
    return 700.0


def row(what: str, begin: float) -> None:
    """Print a row of the table in docs/design/netmgr.md."""
    print(f"ROW {what}: {trio.current_time() - begin:.1f} s")


def wifi(ssid: str, priority: int = 0, **fields: Any) -> dict[str, Any]:
    """Return a wifi network of the configuration."""
    return {"type": "wifi", "ssid": ssid, "psk": PASSPHRASE, "priority": priority, **fields}


def settings(networks: Mapping[str, Any], **network_configuration: Any) -> dict[str, Any]:
    """Return a configuration for which only an answer of the cloud counts as online."""
    configuration = {"turn_on_hotspot_if_wifi_has_no_internet": True, **network_configuration}
    return {"network_configuration": configuration, "additional_networks": dict(networks)}


@asynccontextmanager
async def managed(guest: Guest, document: Mapping[str, Any], **request: Any) -> AsyncIterator[Device]:
    """Run network management of a new device while the context is open."""
    await guest.run("rm -rf /tmp/network /run/network.json*")
    async with running(guest, settings=document, cloud=ASKED, **{"configured": True, **request}) as device:
        try:
            yield device
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 30):
                await device.process.close_input()
                await device.process.wait()


def said_of(explanation: Mapping[str, Any], label: str) -> str:
    """Return what is said about a network."""
    sentences: list[str] = []
    for interface in explanation["interfaces"]:
        if interface["network"] == label:
            sentences.append(interface["state"]["text"])
        sentences += [entry["why"]["text"] for entry in interface["not_used"] if entry["network"] == label]
    return " ".join(sentences)


async def until(device: Device, command: str, true: Callable[[Any], bool], limit: float = LIMIT) -> Any:
    """Wait until the answer to a command is as expected; return it."""
    answer: Any = None
    with trio.move_on_after(limit):
        while True:
            answer = await device.call(command)
            if true(answer):
                return answer
            await trio.sleep(1)  # another computer, in effect: nothing reports changes
    raise AssertionError(f"not within {limit:.0f} s: {answer}")


async def until_said(device: Device, label: str, text: str, limit: float = LIMIT) -> None:
    """Wait until `machine agent network explain` says something about a network."""
    await until(device, "explain", lambda answer: text in said_of(answer, label), limit)


async def until_proved(device: Device, interface: str, limit: float = LIMIT) -> None:
    """Wait until the cloud has answered through an interface."""
    await until(
        device,
        "status",
        lambda answer: any(each["name"] == interface and each["cloud"] for each in answer["interfaces"]),
        limit,
    )


@pytest.mark.parametrize(
    ("uplink", "text"),
    [
        ("portal", "page of the network answers"),
        ("silent-names", "name of the cloud cannot be resolved"),
        ("no-names", "name of the cloud cannot be resolved"),
        ("wrong-names", "cloud does not answer"),
    ],
)
async def test_a_network_without_internet_is_explained_and_another_one_used(
    guest: Guest, plant: Plant, uplink: Uplink, text: str
) -> None:
    air: Air = await plant.air(radios=3)
    home = await air.access_point(HOME, PASSPHRASE, uplink=uplink)
    await air.access_point(BACKUP, PASSPHRASE, channel=6)
    begin = trio.current_time()
    async with managed(guest, settings({HOME: wifi(HOME, 5), BACKUP: wifi(BACKUP)})) as device:
        await until_said(device, HOME, text)
        row(f"upstream {uplink}: the reason is explained", begin)
        assert len(await home.stations()) == 1, "it is still tried"
        assert (await device.call("status"))["mode"] == "searching", "it does not count as online"
        await device.mode("online")
        row(f"upstream {uplink}: online in another known network", begin)
        await until_proved(device, air.devices[0])
        assert text in said_of(await device.call("explain"), HOME)


async def test_a_sign_in_page_starts_the_hotspot(guest: Guest, plant: Plant) -> None:
    air: Air = await plant.air(radios=2)
    home = await air.access_point(HOME, PASSPHRASE, uplink="portal")
    begin = trio.current_time()
    document = settings({HOME: wifi(HOME)}, offline_before_starting_hotspot_minutes=1)
    async with managed(guest, document) as device:
        await device.mode("hotspot")
        await until_runs(device)
        row("upstream portal: the hotspot runs", begin)
        assert "page of the network answers" in said_of(await device.call("explain"), HOME)
        begin = trio.current_time()
        await home.uplink("internet")
        await device.mode("online", limit=400)
        row("upstream portal: online after the login, while the hotspot runs", begin)


LIES: Final = {
    "mask": "The cloud answers",
    "identity": "The cloud answers",
    "gateway": "The cloud does not answer",
    "other-identity": "gives this device no address",
    "second": "gives this device no address",
    "refusal": "gives this device no address",
    "address": "gives this device no address",
}
"""By lie of tests/hil/guest/liar.py: what is said of the network."""


async def lying(air: Air, ssid: str, lie: str) -> AccessPoint:
    point = await air.access_point(ssid, PASSPHRASE, dhcp=False)
    device = point.place.namespace.removeprefix("radio-")
    words = f"python3 -m tests.hil.guest.liar {device} {point.address} {lie}"
    server = await point.place.start(f"cd {SOURCE} && exec {words}")
    await server.wait_output("serving")
    return point


async def test_dhcp_that_lies(guest: Guest, plant: Plant) -> None:
    air: Air = await plant.air(radios=2 * len(LIES), machine=len(LIES))
    names = dict(zip(LIES, air.devices, strict=True))
    for lie in LIES:
        await lying(air, lie, lie)
    begin = trio.current_time()
    networks = {lie: wifi(lie, interface=names[lie]) for lie in LIES}
    missing = dict(LIES)
    async with managed(guest, settings(networks)) as device:
        explained: Any = None
        with trio.move_on_after(2 * LIMIT):
            while missing:
                explained = await device.call("explain")
                for lie in [lie for lie, text in missing.items() if text in said_of(explained, lie)]:
                    row(f"DHCP lies ({lie}): {missing.pop(lie)!r}", begin)
                await trio.sleep(1)  # another computer, in effect: nothing reports changes
        assert not missing, explained
        assert not (await device.call("status"))["problems"]
        assert "127.0.0.1" not in (await guest.run("ip route; ip -br address show scope global")).stdout


@pytest.mark.parametrize("trouble", ["silent", "exhausted", "refusal"])
async def test_dhcp_without_an_address_and_another_network(guest: Guest, plant: Plant, trouble: str) -> None:
    air: Air = await plant.air(radios=3)
    if trouble == "silent":
        await air.access_point(HOME, PASSPHRASE, dhcp=False)
    elif trouble == "exhausted":
        await air.access_point(HOME, PASSPHRASE, dnsmasq=["dhcp-ignore=tag:!known"])
    else:
        await lying(air, HOME, "refusal")
    await air.access_point(BACKUP, PASSPHRASE, channel=6)
    begin = trio.current_time()
    async with managed(guest, settings({HOME: wifi(HOME, 5), BACKUP: wifi(BACKUP)})) as device:
        await until_said(device, HOME, "gives this device no address")
        row(f"DHCP {trouble}: explained", begin)
        await device.mode("online")
        row(f"DHCP {trouble}: online in another known network", begin)
        await until_proved(device, air.devices[0])


@pytest.fixture
async def clock(guest: Guest) -> AsyncIterator[Callable[[str], Any]]:
    """Yield a function that sets the guest's clock until the end of the test."""
    before, began = float((await guest.run("date +%s")).stdout), trio.current_time()

    async def set_to(date: str) -> None:
        await guest.run(["date", "--utc", "--set", date])

    yield set_to
    await guest.run(["date", "--set", f"@{before + trio.current_time() - began:.0f}"])


@pytest.mark.parametrize("date", ["1970-01-02", "2100-01-01"])
async def test_a_clock_that_is_wrong_by_years(
    guest: Guest, plant: Plant, clock: Callable[[str], Any], date: str
) -> None:
    air: Air = await plant.air(radios=2)
    home = await air.access_point(HOME, PASSPHRASE)
    await clock(date)
    begin = trio.current_time()
    async with managed(guest, settings({HOME: wifi(HOME)})) as device:
        await device.mode("online")
        row(f"clock in {date[:4]}: online, proved by the cloud", begin)
        await clock("2026-07-01")
        begin = trio.current_time()
        await home.down()
        await home.up()
        await device.mode("searching")
        await device.mode("online")
        row(f"clock set from {date[:4]} to 2026 while the access point restarts: online again", begin)
        status = await device.call("status")
        assert not status["problems"]
