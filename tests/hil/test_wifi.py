"""netmgr's wpa_supplicant with real hostapd: networks joined and lost, failures with their reasons, the hotspot."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
import trio

from netmgr.model.network import Open, Personal, Security, UsableNetwork
from netmgr.model.settings import Hotspot
from tests.hil.rig.channel import GuestProcess
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant, PlantError
from tests.scope import RIG, on_demand

HOME, PASSPHRASE = "home", "correct horse"
SETUP = Hotspot(ssid=b"machine-setup", password="battery staple")
LIMIT = 180.0
INTERFACE, VIRTUAL = "wlan0", "ap0"
ADDRESS = "10.42.0.1"
DHCP = "exec dnsmasq -k -C /dev/null --port=0 --bind-interfaces --leasefile-ro --dhcp-range=10.42.0.10,10.42.0.99"


class Wifi:
    """The machine's radio, controlled by netmgr in the guest."""

    def __init__(self, process: GuestProcess) -> None:
        self.process = process
        self._early: list[tuple[str, Any]] = []  # lines before those that were waited for

    async def line(self, *kinds: str) -> tuple[str, Any]:
        """Return the next line of one of these kinds; lines of other kinds are kept for other calls."""
        for number, (kind, _) in enumerate(self._early):
            if kind in kinds:
                return self._early.pop(number)
        with trio.fail_after(LIMIT):
            async for text in self.process.lines:
                ((kind, value),) = json.loads(text).items()
                if kind in kinds:
                    return kind, value
                self._early.append((kind, value))
        raise AssertionError(self.process.output)

    async def call(self, method: str, **arguments: Any) -> Any:
        await self.process.write(json.dumps({"call": method, **arguments}) + "\n")
        kind, value = await self.line("answer", "error")
        assert kind == "answer", value
        return value

    async def join(self, ssid: str, security: Security, *, hidden: bool = False) -> tuple[str, Any]:
        """Join a network; return the next report."""
        network = UsableNetwork(
            label=ssid, kind="wifi", source="portal", ssid=ssid.encode(), security=security, hidden=hidden
        )
        await self.call("join", interface=INTERFACE, network=msgspec.to_builtins(network))
        return await self.report()

    async def add_hotspot_interface(self) -> None:
        """Add a virtual interface to the radio of the client."""
        radio = (await self.call("interfaces"))[INTERFACE]
        await self.call("add_hotspot_interface", radio=radio, name=VIRTUAL)

    async def report(self) -> tuple[str, Any]:
        return await self.line("Joined", "JoinFailed", "Left")

    async def failure(self, ssid: str, security: Security, **how: Any) -> str:
        """Join a network that cannot be joined; return why."""
        kind, value = await self.join(ssid, security, **how)
        assert kind == "JoinFailed", value
        assert await self.call("joining") == {}
        return str(value["failure"])


async def wifi_of(guest: Guest) -> Wifi:
    return Wifi(await guest.start(["python3", "-m", "tests.hil.guest.wifi"]))


@pytest.fixture
async def wifi(guest: Guest) -> Wifi:
    return await wifi_of(guest)


slow = on_demand(90, RIG)
BOTH = {"wpa_key_mgmt": "SAE WPA-PSK", "ieee80211w": "1", "wpa_passphrase": PASSPHRASE}


@pytest.mark.parametrize(
    ("security", "hostapd", "cipher"),
    [
        pytest.param("wpa2", {}, "wpa2", marks=slow),
        ("wpa3", {}, "wpa3"),
        pytest.param("wpa3", BOTH, "wpa2-wpa3", marks=slow),
    ],
)
async def test_a_network_with_a_password(
    plant: Plant, wifi: Wifi, security: Any, hostapd: dict[str, str], cipher: str
) -> None:
    air = await plant.air(radios=2)
    point = await air.access_point(HOME, PASSPHRASE, security=security, hostapd=hostapd)
    (heard,) = await wifi.call("scan", interface=INTERFACE)
    assert (base64.b64decode(heard["ssid"]), heard["cipher"]) == (HOME.encode(), cipher)
    assert await wifi.failure(HOME, Personal(passphrase="wrong horse")) == "wrong-password"
    assert await point.stations() == []
    assert await wifi.call("association", interface=INTERFACE) is None
    assert (await wifi.join(HOME, Personal(passphrase=PASSPHRASE)))[0] == "Joined"
    assert len(await point.stations()) == 1
    association = await wifi.call("association", interface=INTERFACE)
    assert (association["frequency"], association["signal"]) == (2412, -30)
    await wifi.call("leave", interface=INTERFACE)
    assert await wifi.call("association", interface=INTERFACE) is None


OWE = {"wpa": "2", "wpa_key_mgmt": "OWE", "rsn_pairwise": "CCMP", "ieee80211w": "2"}


@pytest.mark.parametrize(("hostapd", "cipher"), [({}, "open"), (OWE, "owe")])
async def test_a_network_without_a_password(plant: Plant, wifi: Wifi, hostapd: dict[str, str], cipher: str) -> None:
    air = await plant.air(radios=2)
    await air.access_point(HOME, hostapd=hostapd)
    assert (await wifi.join(HOME, Open()))[0] == "Joined"
    (heard,) = await wifi.call("access_points", interface=INTERFACE)
    assert heard["cipher"] == cipher


@slow
async def test_a_network_that_does_not_accept_this_device(plant: Plant, wifi: Wifi) -> None:
    air = await plant.air(radios=2)
    await air.access_point(HOME, PASSPHRASE, hostapd={"max_num_sta": "0", "no_probe_resp_if_max_sta": "0"})
    assert await wifi.failure(HOME, Personal(passphrase=PASSPHRASE)) == "rejected"


@on_demand(25, RIG)
async def test_a_hidden_network(plant: Plant, wifi: Wifi) -> None:
    air = await plant.air(radios=2)
    await air.access_point(HOME, PASSPHRASE, hidden=True)
    assert await wifi.failure(HOME, Personal(passphrase=PASSPHRASE)) == "not-found"
    assert (await wifi.join(HOME, Personal(passphrase=PASSPHRASE), hidden=True))[0] == "Joined"


@slow
async def test_a_hidden_network_that_loses_its_power(plant: Plant, wifi: Wifi) -> None:
    air = await plant.air(radios=2)
    point = await air.access_point(HOME, PASSPHRASE, hidden=True)
    assert (await wifi.join(HOME, Personal(passphrase=PASSPHRASE), hidden=True))[0] == "Joined"
    await point.down()
    assert (await wifi.report())[0] == "Left"
    assert await wifi.call("joining") == {INTERFACE: HOME}
    await point.up()
    assert (await wifi.report())[0] == "Joined"
    await point.down(says_goodbye=True)
    assert (await wifi.report())[0] == "Left"
    await point.up(passphrase="new password")
    kind, failed = await wifi.report()
    assert (kind, failed["failure"]) == ("JoinFailed", "wrong-password")


async def test_wpa_supplicant_ends_and_is_started_again(guest: Guest, plant: Plant, wifi: Wifi) -> None:
    air = await plant.air(radios=2)
    await air.access_point(HOME, PASSPHRASE)
    assert (await wifi.join(HOME, Personal(passphrase=PASSPHRASE)))[0] == "Joined"
    await guest.run("kill -9 $(pidof wpa_supplicant)")
    assert (await wifi.report())[0] == "Left"
    assert await wifi.line("running") == ("running", "yes")
    assert "wpa_supplicant has ended" in (await wifi.line("running"))[1]
    assert await wifi.line("running") == ("running", "yes")
    assert (await wifi.join(HOME, Personal(passphrase=PASSPHRASE)))[0] == "Joined"


FORMER = "/run/machine-agent/wifi/radio0"


async def test_a_killed_agent_leaves_nothing_that_disturbs_the_next(guest: Guest, plant: Plant) -> None:
    await plant.air(radios=2)
    await guest.run(f"mkdir -p {FORMER} && wpa_supplicant -B -g {FORMER}/global")
    (earlier,) = (await guest.run("pidof wpa_supplicant")).stdout.split()
    ended = await guest.start(f"exec tail --pid={earlier} -f /dev/null")
    killed = await wifi_of(guest)
    await killed.add_hotspot_interface()
    await killed.call("start_hotspot", interface=VIRTUAL, hotspot=msgspec.to_builtins(SETUP, enc_hook=str))
    await ended.wait()  # its socket, for which netmgr waits, is removed a moment before
    (present,) = (await guest.run("pidof wpa_supplicant")).stdout.split()
    assert present != earlier
    await guest.run(f"kill -9 {killed.process.pid}")
    await killed.process.wait()
    following = await wifi_of(guest)
    while (await following.call("interfaces")).keys() != {INTERFACE}:  # the kernel removes the other one in a moment
        await following.line("changes")


async def test_a_phone_stays_in_the_hotspot_while_a_network_is_joined(guest: Guest, plant: Plant, wifi: Wifi) -> None:
    air = await plant.air(radios=3)
    await air.access_point(HOME, PASSPHRASE, channel=11)
    await wifi.add_hotspot_interface()
    await wifi.call("start_hotspot", interface=VIRTUAL, hotspot=msgspec.to_builtins(SETUP, enc_hook=str))
    await guest.run(f"ip address add {ADDRESS}/24 dev {VIRTUAL}")
    await guest.start(f"{DHCP} --interface={VIRTUAL}")
    phone = await air.phone()
    (seen,) = [network for network in await phone.scan() if network["ssid"] == SETUP.ssid.decode()]
    assert (seen["security"], seen["frequency"]) == ("[WPA2-PSK-CCMP][ESS]", 2437)
    with pytest.raises(PlantError, match="refuses the passphrase"):
        await phone.join(SETUP.ssid.decode(), "wrong password")
    await phone.join(SETUP.ssid.decode(), SETUP.password)
    assert (await wifi.join(HOME, Personal(passphrase=PASSPHRASE)))[0] == "Joined"
    assert await wifi.call("hotspot") == VIRTUAL
    await phone.place.run(["ping", "-q", "-c", "1", "-w", "60", ADDRESS])
    assert "channel 11 " in (await guest.run(f"iw dev {VIRTUAL} info")).stdout
    await wifi.call("stop_hotspot")
    await wifi.call("release", interface=VIRTUAL)
    assert await wifi.call("hotspot") == ""
    assert await wifi.call("association", interface=INTERFACE) is not None


async def test_a_radio_that_is_either_a_hotspot_or_a_client(plant: Plant, wifi: Wifi) -> None:
    air = await plant.air(radios=3)
    point = await air.access_point(HOME, PASSPHRASE)
    await wifi.call("start_hotspot", interface=INTERFACE, hotspot=msgspec.to_builtins(SETUP, enc_hook=str))
    phone = await air.phone()
    assert {network["ssid"] for network in await phone.scan()} == {HOME, SETUP.ssid.decode()}
    assert (await wifi.join(HOME, Personal(passphrase=PASSPHRASE)))[0] == "Joined"
    assert await wifi.call("hotspot") == ""
    assert len(await point.stations()) == 1


async def test_the_kernel_describes_and_changes_radios(guest: Guest, plant: Plant, wifi: Wifi) -> None:
    await plant.air(radios=1)
    number = (await wifi.call("interfaces"))[INTERFACE]
    (radio,) = await wifi.call("radios")
    assert radio == {"number": number, "blocked": "", "hotspot": True, "both": True, "sae": True}
    await guest.run(f"ip link set {INTERFACE} up")
    index = int((await guest.run(f"cat /sys/class/net/{INTERFACE}/ifindex")).stdout)
    for on, text in ((True, "on"), (False, "off")):
        await wifi.call("set_power_save", index=index, on=on)
        assert await wifi.call("power_save", index=index) is on
        assert f"Power save: {text}" in (await guest.run(f"iw dev {INTERFACE} get power_save")).stdout
    await wifi.call("set_country", country="DE")
    while "country" not in (await wifi.line("changes"))[1]:
        pass
    assert await wifi.call("country") == "DE"
    await wifi.add_hotspot_interface()
    await wifi.add_hotspot_interface()
    virtual = int((await guest.run(f"cat /sys/class/net/{VIRTUAL}/ifindex")).stdout)
    await wifi.call("delete_interface", index=virtual)
    await wifi.call("delete_interface", index=virtual)
    assert await wifi.call("interfaces") == {INTERFACE: number}
