"""The host's side of the simulated radios: home routers, a phone, and the machine's NetworkManager."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlencode

from tests.hil.guest.probes import PROBES, Verdict
from tests.hil.image.contents import SOURCE
from tests.hil.rig.channel import GuestProcess
from tests.hil.rig.guest import Completed, Guest
from tests.hil.rig.plant import Plant, Thing

Uplink = Literal["internet", "none", "portal", "silent-names", "no-names", "wrong-names"]
Security = Literal["", "open", "wpa2", "wpa3"]
JOIN_LIMIT: Final = 120.0  # seconds to join a network or start an access point
FETCH: Final = ("python3", "-I", "-S", f"{SOURCE}/tests/hil/guest/fetch.py")
UNITS: Final = ("NetworkManager", "wpa_supplicant")

NETWORK_MANAGER: Final = f"""[main]
plugins=keyfile
dns=default

[keyfile]
unmanaged-devices=interface-name:eth0;interface-name:lo

[connectivity]
uri={PROBES["networkmanager"].url}
response={PROBES["networkmanager"].body.strip()}
interval=60
"""
"""NetworkManager leaves the rig's own link alone, and tests connectivity as desktops do."""


class FetchError(OSError):
    """A request was not answered."""


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to an HTTP request."""

    status: int
    headers: dict[str, str]  # by name in lower case
    body: str


class Place:
    """A network namespace of the guest, in which programs run as if on another computer."""

    def __init__(self, guest: Guest, namespace: str) -> None:
        self._guest = guest
        self.namespace = namespace

    async def run(self, command: str | Sequence[str], **how: Any) -> Completed:
        """Run a program to its end in this namespace. See Guest.run."""
        return await self._guest.run(self._words(command), **how)

    async def start(self, command: str | Sequence[str], **how: Any) -> GuestProcess:
        """Start a program in this namespace. See Guest.start."""
        return await self._guest.start(self._words(command), **how)

    async def fetch(self, *requests: Mapping[str, Any], limit: float = 20.0) -> list[dict[str, Any]]:
        """Send HTTP requests in turn: see tests/hil/guest/fetch.py."""
        usual = {"method": "GET", "headers": {}, "body": "", "ca": "", "limit": limit}
        document = json.dumps([{**usual, **request} for request in requests])
        answers: list[dict[str, Any]] = json.loads((await self.run(FETCH, input=document)).stdout)
        return answers

    def _words(self, command: str | Sequence[str]) -> list[str]:
        words = ["/bin/bash", "-c", command] if isinstance(command, str) else list(command)
        return ["ip", "netns", "exec", self.namespace, *words]


class AccessPoint(Thing):
    """A home router: its namespace `place` and its own `address`; it leases addresses up to .99."""

    place: Place
    address = ""

    async def down(self, *, says_goodbye: bool = False) -> None:
        """Cut its power: stations are not notified, unless `says_goodbye` disconnects them first."""
        await self.call("down", says_goodbye=says_goodbye, limit=JOIN_LIMIT)

    async def up(self, **changed: Any) -> None:
        """Switch it on again, with changed arguments of `access_point`, such as passphrase."""
        await self.call("up", **changed, limit=JOIN_LIMIT)

    async def uplink(self, kind: Uplink) -> None:
        """Change its uplink."""
        await self.call("uplink", kind)

    async def signal(self, strength: int) -> None:
        """Set the signal strength at the receivers, in dBm from -80 to -10; initially -30."""
        await self.call("signal", strength)

    async def away(self, away: bool = True) -> None:
        """Move it out of reach, or back."""
        await self.call("away", away)

    async def stations(self) -> list[str]:
        """Return the hardware addresses of the connected stations."""
        addresses: list[str] = await self.call("stations")
        return addresses


class Phone:
    """A phone. `place` is its namespace, for other programs."""

    def __init__(self, thing: Thing, place: Place) -> None:
        self._thing = thing
        self.place = place

    async def scan(self) -> list[dict[str, Any]]:
        """Return the networks in reach: ssid (empty if hidden), bssid, frequency, signal in dBm, security as flags."""
        networks: list[dict[str, Any]] = await self._thing.call("scan")
        return networks

    async def join(
        self, ssid: str, passphrase: str = "", *, hidden: bool = False, limit: float = JOIN_LIMIT
    ) -> dict[str, Any]:
        """Wait for a network to appear, join it, and obtain an address.

        Return the lease: address, router, dns (a list) and portal (option 114), empty where not offered. PlantError if
        the passphrase is rejected, no address is leased, or the network does not appear within `limit` seconds.
        """
        lease: dict[str, Any] = await self._thing.call("join", ssid, passphrase, hidden, limit, limit=limit + 30)
        return lease

    async def leave(self) -> None:
        """Leave the network and forget it."""
        await self._thing.call("leave")

    async def get(self, url: str, **headers: str) -> Response:
        """Request a page; FetchError if there is no answer. Redirects are not followed, certificates not verified."""
        return await self._fetch({"method": "GET", "url": url, "headers": headers})

    async def post(self, url: str, form: Mapping[str, str], **headers: str) -> Response:
        """Send a form, with the rules of `get`."""
        fields = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        return await self._fetch({"method": "POST", "url": url, "headers": fields, "body": urlencode(form)})

    async def check(self) -> dict[str, Verdict]:
        """Return what devices of each vendor conclude about the network: online, portal (it pops up) or none."""
        answers = await self.place.fetch(*({"url": probe.url} for probe in PROBES.values()))
        return {
            name: probe.verdict(answer.get("status", 0), answer.get("body", ""))
            for (name, probe), answer in zip(PROBES.items(), answers, strict=True)
        }

    async def _fetch(self, request: Mapping[str, Any]) -> Response:
        [answer] = await self.place.fetch(request)
        if "error" in answer:
            raise FetchError(f"{request['method']} {request['url']}: {answer['error']}")
        return Response(**answer)


class Air(Thing):
    """Radios in reach of each other. `devices` are the machine's; every name resolves to the namespace `internet`."""

    internet: Place
    devices: list[str]

    async def access_point(
        self,
        ssid: str,
        passphrase: str = "",
        *,
        uplink: Uplink = "internet",
        security: Security = "",
        hidden: bool = False,
        channel: int = 1,
        dhcp: bool = True,
        hostapd: Mapping[str, str] | None = None,
        dnsmasq: Sequence[str] = (),
    ) -> AccessPoint:
        """Switch on a home router, which takes one radio.

        With a passphrase, its network has WPA2 unless `security` is set. `hostapd` and `dnsmasq` are more settings of
        those programs, such as {"ieee80211w": "2"} or ["dhcp-option=option:router"] (no router offered).
        """
        settings = {
            "ssid": ssid,
            "passphrase": passphrase,
            "uplink": uplink,
            "security": security,
            "hidden": hidden,
            "channel": channel,
            "dhcp": dhcp,
            "hostapd": dict(hostapd or {}),
            "dnsmasq": list(dnsmasq),
        }
        point = await self.plant.make_as(AccessPoint, "tests.hil.guest.air:AccessPoint", self, settings)
        point.place = await self._place(point)
        point.address = await point.get("address")
        return point

    async def phone(self) -> Phone:
        """Create a phone, which takes one radio."""
        thing = await self.plant.make("tests.hil.guest.air:Phone", self)
        return Phone(thing, await self._place(thing))

    async def network_manager(self) -> None:
        """Start NetworkManager without saved networks for the machine's radios; it ends with the test.

        The test module needs systemd. Returns when NetworkManager manages the radios.
        """
        folder = "/etc/NetworkManager"
        guest = self.plant.guest
        await guest.run(f"rm -rf /run/NetworkManager /var/lib/NetworkManager/* {folder}/system-connections/*")
        await guest.write(f"{folder}/conf.d/rig.conf", NETWORK_MANAGER)
        await guest.run(f"systemctl unmask -q {' '.join(UNITS)} && systemctl start NetworkManager && nm-online -sqt 60")

    async def _place(self, thing: Thing) -> Place:
        return Place(self.plant.guest, await thing.get("namespace"))


async def open_air(plant: Plant, radios: int, machine: int) -> Air:
    """Create simulated radios of which the first `machine` are the machine's own; return their air."""
    air = await plant.make_as(Air, "tests.hil.guest.air:Air", radios, machine)
    air.devices = await air.get("devices")
    air.internet = Place(plant.guest, "internet")
    return air
