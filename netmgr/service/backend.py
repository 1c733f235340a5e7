"""What the portal and the gRPC API of provisioning show, and what follows from what people enter there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

import trio
from msgspec.structs import replace

from netmgr.model.facts import AccessPoint
from netmgr.model.network import Open, Personal, UsableNetwork
from netmgr.model.words import explained
from netmgr.portal.access import Lock
from netmgr.portal.state import CredentialsEntry, NetworkEntry, PortalAttempt, PortalState, SeenNetwork
from netmgr.provisioning.candidates import due_at, joins_during_hotspot
from netmgr.provisioning.conditions import online
from netmgr.provisioning.states import Entered, EnteringFinished, Interacted, Mode, ProvisioningWorld
from netmgr.service.core import NetworkService
from netmgr.service.labels import portal_label
from netmgr.store.stored import StoredNetworks

MAX_SHOWN: Final = 60
"""Networks in the list."""


@dataclass(frozen=True, slots=True)
class Product:
    """What the portal says about the device."""

    manufacturer: str
    model: str
    fragment_id: str = ""


@dataclass(slots=True)
class PortalBackend:
    """What the portal can do.

    `enter` adds a network to the entered ones; `store_credentials` checks and stores credentials.
    """

    service: NetworkService
    product: Callable[[], Product]
    version: str
    hostname: str
    configured: Callable[[], bool]
    lock: Lock
    store_credentials: Callable[[bytes], Awaitable[None]]
    entered: Callable[[tuple[UsableNetwork, ...], UsableNetwork], tuple[UsableNetwork, ...]]
    page: Callable[[], str]
    """Returns the URL of the device's page in the cloud."""

    def state(self) -> PortalState:
        """Return what to show."""
        service, product = self.service, self.product()
        facts, settings = service.board.facts(), service.settings
        state = service.outcome.state if service.outcome is not None else None
        world = ProvisioningWorld(settings=settings, facts=facts, configured=self.configured())
        points = facts.access_points
        errors = {}
        if state is not None:
            tried = state.tried.items()
            errors = {label: explained(entry.failure) for label, entry in tried}
        by_ssid = {network.ssid: network for network in settings.networks if network.ssid}
        return PortalState(
            name=self.hostname,
            manufacturer=product.manufacturer,
            model=product.model,
            fragment_id=product.fragment_id,
            agent_version=self.version,
            configured=world.configured,
            online=state is not None and online(state, world, facts.now),
            networks=seen(points, {entry.ssid for entry in facts.associations.values()}, by_ssid, errors),
            scanned_ago=min((facts.now - point.seen for point in points), default=None),
            attempt=self._attempt(facts.now),
            next_text=self.next_text(),
            stays=joins_during_hotspot(world),
            next_url=self.page(),
            replaceable=self.lock.opened(),
        )

    def interacted(self) -> None:
        """Note that a person is active, so that provisioning is not interrupted."""
        self.service.post(Interacted())

    def enter_network(self, entry: NetworkEntry) -> None:
        """Store a network, and join it as soon as the answer has left (`leave`)."""
        network = UsableNetwork(
            label=portal_label(entry.ssid),
            kind="wifi",
            source="portal",
            ssid=entry.ssid,
            security=Personal(passphrase=entry.passphrase) if entry.passphrase else Open(),
            hidden=entry.hidden,
        )
        self.service.enter(partial_entered(self.entered, network), Entered(label=network.label))

    async def enter_credentials(self, entry: CredentialsEntry) -> None:
        """Store the credentials of the cloud."""
        self.lock.check(entry.proof, trio.current_time())
        await self.store_credentials(entry.document)
        self.service.poke()

    def leave(self) -> None:
        """Use what was entered: the hotspot may end."""
        self.service.post(EnteringFinished())

    def scan(self) -> None:
        """Listen for networks again, if the radio can do so now."""
        self.service.scan()

    def _attempt(self, now: float) -> PortalAttempt | None:
        outcome = self.service.outcome
        attempt = outcome.state.attempt if outcome is not None else None
        if attempt is None or outcome is None:
            return None
        network = next((entry for entry in self.service.settings.networks if entry.label == attempt.label), None)
        texts = {"joining": "The device joins the network.", "joined": "The device has joined the network."}
        text = texts.get(attempt.progress, "")
        progress = attempt.progress
        if attempt.progress == "failed":
            reason = attempt.detail if attempt.failure is None else explained(attempt.failure)
            text = f"{reason[:1].upper()}{reason[1:]}."
        is_online = outcome.state.mode is Mode.ONLINE
        return PortalAttempt(
            ssid=network.ssid if network is not None else b"",
            progress="online" if progress == "joined" and is_online else progress,
            text="The device is online." if progress == "joined" and is_online else text,
            ago=max(0.0, now - attempt.at),
        )

    def next_text(self) -> str:
        """Return what happens next and when, for people."""
        outcome = self.service.outcome
        if outcome is None:
            return ""
        state, settings, now = outcome.state, self.service.settings, trio.current_time()
        match state.mode:
            case Mode.HOTSPOT if state.entered:
                return "The entered network is joined when you finish, or when you have been inactive for a while."
            case Mode.HOTSPOT if not self.configured():
                return "The hotspot stays until the device has a network and credentials of a cloud."
            case Mode.HOTSPOT:
                retry = max(state.since + settings.retry, state.interaction + settings.user_idle)
                return f"The hotspot ends for a while in {minutes(retry - now)}, to try known networks."
            case Mode.TESTING:
                return "The device joins the entered network. If that fails, the hotspot returns with the reason."
            case Mode.SEARCHING:
                due = [due_at(state, network, settings) for network in settings.networks if network.kind == "wifi"]
                later = [time for time in due if time > now]
                text = f"The next attempt is in {minutes(min(later) - now)}. " if later and not state.targets else ""
                hotspot = max(state.online_at, state.started, state.left_hotspot) + settings.offline_before_hotspot
                return f"{text}The hotspot starts in {minutes(hotspot - now)} if the device stays offline."
            case Mode.ONLINE:
                return "Nothing: the device is online."


def seen(
    points: Iterable[AccessPoint], joined: set[bytes], by_ssid: dict[bytes, UsableNetwork], errors: dict[str, str]
) -> tuple[SeenNetwork, ...]:
    """Return the strongest access point of each SSID, the strongest first."""
    strongest: dict[bytes, AccessPoint] = {}
    for point in points:
        if point.ssid and (point.ssid not in strongest or strongest[point.ssid].signal < point.signal):
            strongest[point.ssid] = point
    ordered = sorted(strongest.values(), key=lambda point: -point.signal)[:MAX_SHOWN]
    return tuple(
        SeenNetwork(
            ssid=point.ssid,
            cipher=point.cipher,
            percent=point.percent,
            connected=point.ssid in joined,
            last_error=errors.get(by_ssid[point.ssid].label, "") if point.ssid in by_ssid else "",
        )
        for point in ordered
    )


def minutes(seconds: float) -> str:
    """Return a time for people."""
    if seconds < 90:
        return f"{max(2, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes"


def partial_entered(
    entered: Callable[[tuple[UsableNetwork, ...], UsableNetwork], tuple[UsableNetwork, ...]], network: UsableNetwork
) -> Callable[[StoredNetworks], StoredNetworks]:
    """Return a change of the stored record that adds an entered network."""

    def change(stored: StoredNetworks) -> StoredNetworks:
        return replace(stored, networks=entered(stored.networks, network))

    return change
