"""A device with a radio, driven step by step."""

from __future__ import annotations

from ipaddress import IPv4Interface, IPv4Network
from typing import Any

from msgspec.structs import replace

from netmgr.model.events import JoinFailed, JoinFailure
from netmgr.model.facts import (
    OWN,
    AccessPoint,
    Association,
    InterfaceAddress,
    KernelRoute,
    NetworkFacts,
    NetworkLink,
    WifiRadio,
)
from netmgr.model.network import Personal, UsableNetwork
from netmgr.model.settings import Hotspot, NetworkSettings
from netmgr.provisioning.states import Event, Mode, ProvisioningOutcome, ProvisioningState, ProvisioningWorld
from netmgr.provisioning.step import step

HOTSPOT = Hotspot(ssid=b"machine-setup-pi", password="ghijklmn")
DEFAULT = IPv4Network("0.0.0.0/0")


def wifi(label: str = "home", **fields: Any) -> UsableNetwork:
    """Return a wifi network whose SSID is its label."""
    defaults = {"kind": "wifi", "source": "cloud", "ssid": label.encode(), "security": Personal(passphrase="12345678")}
    return UsableNetwork(label=label, **{**defaults, **fields})


class Device:
    """State, world and last outcome. `heard` has the signal of the networks in the air."""

    def __init__(
        self, *networks: UsableNetwork, configured: bool = True, radios: int = 1, both: bool = False, **settings: Any
    ):
        self.settings = NetworkSettings(networks=networks, hotspot=HOTSPOT, **settings)
        self.configured = configured
        self.links = tuple(
            NetworkLink(index=3 + n, name=f"wlan{n}", kind="wifi", up=True, carrier=False, mac="", radio=n, manager=OWN)
            for n in range(radios)
        )
        self.cable: bool = False
        self.routed: bool = True
        """Whether the cable leads somewhere: it has an address and a route."""
        self.radios = tuple(WifiRadio(number=n, hotspot=True, both=both) for n in range(radios))
        self.heard: dict[str, int] = {}
        self.scanned: float | None = None
        """Time of the last scan; None: the device listens all the time."""
        self.joined: dict[str, str] = {}
        self.cloud: dict[str, bool] = {}
        self.unproved: dict[str, JoinFailure] = {}
        self.state = ProvisioningState()
        self.outcome: ProvisioningOutcome | None = None
        self.now = 0.0

    def world(self) -> ProvisioningWorld:
        links = [
            replace(
                link,
                carrier=link.name in self.joined,
                addresses=(InterfaceAddress(IPv4Interface("192.168.1.5/24")),) if link.name in self.joined else (),
            )
            for link in self.links
        ]
        if self.cable:
            address = (InterfaceAddress(IPv4Interface("10.0.0.5/24")),) if self.routed else ()
            links.append(
                NetworkLink(index=2, name="eth0", kind="wired", up=True, carrier=True, mac="", addresses=address)
            )
        connected = [*self.joined, *(["eth0"] if self.cable and self.routed else [])]
        seen = self.now if self.scanned is None else self.scanned
        facts = NetworkFacts(
            now=self.now,
            links=tuple(links),
            radios=self.radios,
            routes=tuple(
                KernelRoute(destination=DEFAULT, gateway=None, interface=name, metric=1, protocol=4)
                for name in connected
            ),
            access_points=tuple(
                AccessPoint(ssid=label.encode(), bssid="", frequency=2412, signal=signal, cipher="wpa2", seen=seen)
                for label, signal in self.heard.items()
            ),
            associations={
                name: Association(ssid=label.encode(), bssid="", frequency=2412) for name, label in self.joined.items()
            },
            cloud=self.cloud,
            unproved=self.unproved,
        )
        return ProvisioningWorld(settings=self.settings, facts=facts, configured=self.configured)

    def at(self, now: float, event: Event | None = None) -> ProvisioningOutcome:
        """Make all steps that are due until a time, and then one with the event."""
        for _ in range(10_000):
            if self.outcome is None or self.outcome.wake >= now:
                break
            self._step(self.outcome.wake, None)
        else:
            raise AssertionError("more than 10,000 steps")
        return self._step(now, event)

    def fails(self, failure: JoinFailure = JoinFailure.TIMEOUT) -> ProvisioningOutcome:
        """Let the attempt of the first radio fail."""
        assert self.outcome is not None
        (interface, label), *_ = self.outcome.decision.join.items()
        return self._step(self.now, JoinFailed(interface=interface, label=label, failure=failure))

    def joins(self, interface: str = "wlan0") -> ProvisioningOutcome:
        """Let the attempt of a radio succeed."""
        assert self.outcome is not None
        self.joined[interface] = self.outcome.decision.join[interface]
        return self._step(self.now, None)

    def _step(self, now: float, event: Event | None) -> ProvisioningOutcome:
        self.now = now
        self.outcome = step(self.state, self.world(), event, now)
        self.state = self.outcome.state
        assert self.outcome.wake > now
        return self.outcome

    @property
    def mode(self) -> Mode:
        return self.state.mode
