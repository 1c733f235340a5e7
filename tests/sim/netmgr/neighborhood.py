"""A neighborhood of access points with faults, and a device that acts on the decisions of provisioning."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv4Network
from random import Random

from msgspec.structs import replace

from netmgr.model.events import JoinFailed, JoinFailure, Left
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
from netmgr.provisioning.states import (
    Entered,
    EnteringFinished,
    Event,
    Forced,
    Interacted,
    ProvisioningOutcome,
    ProvisioningState,
    ProvisioningWorld,
    kept,
    restored,
)
from netmgr.provisioning.step import step

DAY = 86_400.0
SCAN = {True: 240.0, False: 30.0}  # seconds between scans, online and offline
ROUTE = KernelRoute(destination=IPv4Network("0.0.0.0/0"), gateway=None, interface="wlan0", metric=600, protocol=77)


@dataclass
class Router:
    """An access point."""

    up: bool = True
    password: str = "right-password"
    internet: bool = True
    grants: bool = True
    """DHCP answers."""
    signal: int = -60
    good_since: float = 0.0
    """Since when the device could get online through it."""


@dataclass
class Life:
    """A device in its neighborhood, from its first start to `until`."""

    random: Random
    settings: NetworkSettings
    both: bool
    until: float
    routers: dict[str, Router] = field(default_factory=dict)
    configured: bool = True
    now: float = 0.0
    state: ProvisioningState = field(default_factory=ProvisioningState)
    outcome: ProvisioningOutcome | None = None
    joined: str = ""
    had: bool = False
    """It is joined with an address."""
    attempt: str = ""
    """Network that is being joined."""
    attempts: list[tuple[float, bool]] = field(default_factory=list)
    """Time of each attempt, and whether a person has requested it."""
    reboots: list[float] = field(default_factory=list)
    hotspots: list[float] = field(default_factory=list)
    interactions: list[float] = field(default_factory=list)
    last_online: float = 0.0
    was_online: bool = False
    heard: dict[str, tuple[int, float]] = field(default_factory=dict)
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    checks: list[Callable[[Life], None]] = field(default_factory=list)
    serial: int = 0

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Schedule an action."""
        self.serial += 1
        heapq.heappush(self.events, (self.now + seconds, self.serial, action))

    def run(self) -> None:
        """Live until the end."""
        self.scan()
        while self.now < self.until:
            wake = self.outcome.wake if self.outcome is not None else 0.0
            if self.events and self.events[0][0] <= wake:
                self.now, _, action = heapq.heappop(self.events)
                action()
            else:
                self.now = wake
                self.step(None)

    # ---- the world

    def network(self, label: str) -> UsableNetwork | None:
        return next((network for network in self.settings.networks if network.label == label), None)

    def fits(self, label: str) -> bool:
        """Return whether the device has the right password."""
        network, router = self.network(label), self.routers.get(label)
        return (
            network is not None
            and router is not None
            and isinstance(network.security, Personal)
            and network.security.passphrase == router.password
        )

    def good(self, label: str) -> bool:
        router = self.routers[label]
        return router.up and router.internet and router.grants and self.fits(label)

    def judge(self) -> None:
        """Note since when the device could get online through each router."""
        for label, router in self.routers.items():
            router.good_since = min(router.good_since, self.now) if self.good(label) else math.inf

    def changed(self, label: str) -> None:
        """Let the change of a router take effect."""
        router = self.routers[label]
        self.judge()
        if self.joined == label and not (router.up and self.fits(label)):
            self.joined, self.had = "", False
            self.step(Left(interface="wlan0", label=label))
        elif self.joined == label:
            self.had = router.grants
            self.step(None)

    def scan(self) -> None:
        """Hear the routers, and schedule the next scan."""
        hosting = self.outcome is not None and self.outcome.decision.hotspot and not self.both
        if not hosting or self.random.random() < 0.5:  # many radios cannot scan during a hotspot
            for label, router in self.routers.items():
                if router.up:
                    self.heard[label] = (router.signal, self.now)
            self.step(None)
        self.after(SCAN[self.joined != ""], self.scan)

    def facts(self) -> NetworkFacts:
        address = (InterfaceAddress(IPv4Interface("192.168.1.5/24")),) if self.had else ()
        router = self.routers.get(self.joined)
        joined = self.joined != ""
        return NetworkFacts(
            now=self.now,
            links=(
                NetworkLink(
                    index=3, name="wlan0", kind="wifi", up=True, carrier=joined, mac="", radio=0, manager=OWN,
                    addresses=address,
                ),
            ),
            radios=(WifiRadio(number=0, hotspot=True, both=self.both),),
            routes=(ROUTE,) if self.had else (),
            access_points=tuple(
                AccessPoint(ssid=label.encode(), bssid="", frequency=2412, signal=signal, cipher="wpa2", seen=seen)
                for label, (signal, seen) in self.heard.items()
                if self.now - seen < 60
            ),
            associations={"wlan0": Association(ssid=self.joined.encode(), bssid="", frequency=2412)} if joined else {},
            cloud={"wlan0": True} if self.had and router is not None and router.internet else {},
        )  # fmt: skip

    # ---- the device

    def step(self, event: Event | None) -> None:
        """Make a step and act on its decision."""
        world = ProvisioningWorld(settings=self.settings, facts=self.facts(), configured=self.configured)
        before = self.outcome
        self.outcome = step(self.state, world, event, self.now)
        self.state = self.outcome.state
        if self.outcome.decision.hotspot and not (before is not None and before.decision.hotspot):
            self.hotspots.append(self.now)
        for check in self.checks:
            check(self)
        self.note_online()
        if self.outcome.reboot:
            self.reboots.append(self.now)
            self.power_cut()
            return
        self.act()

    def note_online(self) -> None:
        router = self.routers.get(self.joined)
        online = self.had and (not self.settings.needs_internet or (router is not None and router.internet))
        if online or self.was_online:
            self.last_online = self.now
        self.was_online = online

    def act(self) -> None:
        assert self.outcome is not None
        label = self.outcome.decision.join.get("wlan0", "")
        if label == (self.joined or self.attempt):
            return
        self.joined, self.had, self.attempt = "", False, label
        if label:
            entered = self.state.attempt is not None and self.state.attempt.label == label
            self.attempts.append((self.now, entered and self.state.attempt.progress == "joining"))  # type: ignore[union-attr]
            number = len(self.attempts)
            self.after(self.random.uniform(1, 8), lambda: self.end_of(number))

    def end_of(self, number: int) -> None:
        """End an attempt to join, unless another one has begun."""
        label, router = self.attempt, self.routers.get(self.attempt)
        if number != len(self.attempts) or not label or router is None:
            return
        self.attempt = ""
        failure = None
        if not router.up:
            failure = JoinFailure.NOT_FOUND
        elif not self.fits(label):
            failure = JoinFailure.WRONG_PASSWORD
        elif self.random.random() < 0.1:
            failure = JoinFailure.REJECTED
        if failure is not None:
            self.step(JoinFailed(interface="wlan0", label=label, failure=failure))
            return
        self.joined, self.had = label, router.grants
        self.step(None)

    def power_cut(self) -> None:
        """Start again with what is stored."""
        self.state = restored(kept(self.state), self.now)
        self.outcome, self.joined, self.had, self.attempt, self.heard = None, "", False, "", {}
        self.was_online, self.last_online = False, self.now
        self.step(None)

    # ---- people

    def enter(self, label: str, password: str) -> None:
        """Enter a network in the portal, if the hotspot runs."""
        if self.outcome is None or not self.outcome.decision.hotspot:
            return
        self.interactions.append(self.now)
        self.step(Interacted())
        others = tuple(network for network in self.settings.networks if network.label != label)
        network = UsableNetwork(
            label=label, kind="wifi", source="portal", ssid=label.encode(), security=Personal(passphrase=password),
            priority=999,
        )  # fmt: skip
        lowered = tuple(replace(other, priority=min(other.priority, 998)) for other in others)
        self.settings = replace(self.settings, networks=(network, *lowered))
        self.judge()
        self.step(Entered(label=label))
        if self.random.random() < 0.8:
            self.after(2.0, self.leave)

    def leave(self) -> None:
        self.interactions.append(self.now)
        self.step(EnteringFinished())

    def force(self) -> None:
        self.interactions.append(self.now)
        self.step(Forced())


def settings_of(random: Random, labels: list[str]) -> NetworkSettings:
    """Return random settings with these networks."""
    return NetworkSettings(
        networks=tuple(
            UsableNetwork(
                label=label, kind="wifi", source="cloud", ssid=label.encode(),
                security=Personal(passphrase="right-password"), priority=random.choice([0, 0, 5, -3]),
            )
            for label in labels
        ),
        hotspot=Hotspot(ssid=b"machine-setup-pi", password="ghijklmn"),
        needs_internet=random.random() < 0.5,
        reboot_after_offline=random.choice([0.0, 1800.0, 7200.0]),
    )  # fmt: skip
