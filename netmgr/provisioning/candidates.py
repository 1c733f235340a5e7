"""Which networks an interface may join, in which order, and when. Pure."""

from __future__ import annotations

import math
from typing import Final

from netmgr.model.events import JoinFailure
from netmgr.model.facts import OWN
from netmgr.model.network import Source, UsableNetwork, same_connection
from netmgr.model.settings import NetworkSettings
from netmgr.provisioning.states import (
    FIRST_RETRY,
    FIRST_WRONG_PASSWORD,
    HEARD,
    HOUR,
    MAX_JOINS,
    MAX_WRONG_PASSWORD,
    PERMANENT,
    ROAM_AFTER,
    ProvisioningState,
    ProvisioningWorld,
    Tried,
)
from support import doubled

SOURCES: Final[dict[Source, int]] = {"portal": 0, "console": 1, "cloud": 2, "adopted": 3}
"""Order of networks with the same priority."""


def client_interface(world: ProvisioningWorld) -> str:
    """Return the interface that joins networks which name none: the configured one, or the first; empty if none."""
    names = [link.name for link in sorted(world.facts.links, key=lambda link: link.index) if link.kind == "wifi"]
    chosen = world.settings.wifi_interface
    if chosen:
        return chosen if chosen in names else ""
    return names[0] if names else ""


def hotspot_interface(world: ProvisioningWorld) -> str:
    """Return the interface of the hotspot: the configured one, a second radio's, or the first; empty if none can."""
    facts, client = world.facts, client_interface(world)
    wifi = [link.name for link in sorted(facts.links, key=lambda link: link.index) if link.kind == "wifi"]
    able = [name for name in wifi if (radio := facts.radio_of(name)) and radio.hotspot and radio.blocked != "hard"]
    if not world.settings.wifi_interface:
        able.sort(key=lambda name: name == client)
        return able[0] if able else ""
    return client if client in able else ""


def joins_during_hotspot(world: ProvisioningWorld) -> bool:
    """Return whether the hotspot stays while a network is joined: a second radio, or one that can do both."""
    interface = hotspot_interface(world)
    radio = world.facts.radio_of(interface)
    return bool(interface) and (interface != client_interface(world) or (radio is not None and radio.both))


def networks_for(world: ProvisioningWorld, interface: str) -> tuple[UsableNetwork, ...]:
    """Return the wifi networks of an interface, the preferred one first."""
    names = ("", interface) if interface == client_interface(world) else (interface,)
    networks = [network for network in world.settings.networks if network.kind == "wifi" and network.interface in names]
    return tuple(sorted(networks, key=lambda network: (-network.priority, SOURCES[network.source], network.label)))


def candidates(
    state: ProvisioningState, world: ProvisioningWorld, interface: str, now: float
) -> tuple[UsableNetwork, ...]:
    """Return the networks that may be joined now, the preferred one first.

    Unless the internet is needed, only the preferred network is tried while it is there, as the specification says.
    """
    networks = networks_for(world, interface)
    if networks and not world.settings.needs_internet and is_there(state, networks[0], now):
        return networks[:1]
    return tuple(network for network in networks if is_there(state, network, now))


def is_there(state: ProvisioningState, network: UsableNetwork, now: float) -> bool:
    """Return whether a network was heard. A hidden one is not announced: it may be there until it did not answer."""
    presence, tried = state.heard.get(network.label), state.tried.get(network.label)
    missed = tried.last if tried is not None and tried.failure is JoinFailure.NOT_FOUND else -math.inf
    if network.hidden:
        return now >= missed + HEARD
    return presence is not None and now < presence.last + HEARD and presence.last > missed


def due_at(state: ProvisioningState, network: UsableNetwork, settings: NetworkSettings) -> float:
    """Return the time from which a network may be tried again."""
    tried = state.tried.get(network.label)
    if tried is None or not same_connection(tried.network, network):
        return -math.inf
    return tried.last + pause_after(tried, settings)


def pause_after(tried: Tried, settings: NetworkSettings) -> float:
    """Return the seconds between the last failure and the next attempt."""
    first, longest = FIRST_RETRY, settings.retry
    if tried.failure in PERMANENT:
        first, longest = FIRST_WRONG_PASSWORD, MAX_WRONG_PASSWORD
    return doubled(first, max(first, longest), tried.failures)


def budget_at(state: ProvisioningState) -> float:
    """Return the time from which one more attempt is allowed."""
    return -math.inf if len(state.joins) < MAX_JOINS else state.joins[-MAX_JOINS] + HOUR


def appeared(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether there is a network for the client interface that was not tried within the retry time."""
    networks = candidates(state, world, client_interface(world), now)
    return now >= budget_at(state) and any(
        network.label not in state.tried or now >= state.tried[network.label].last + world.settings.retry
        for network in networks
        if now >= due_at(state, network, world.settings)
    )


def preferred(
    state: ProvisioningState, world: ProvisioningWorld, interface: str, label: str, now: float
) -> UsableNetwork | None:
    """Return a network to change to from the joined one: it has a higher priority, and was heard well for a while."""
    current = next((network for network in networks_for(world, interface) if network.label == label), None)
    for network in candidates(state, world, interface, now):
        presence = state.heard.get(network.label)
        if current is None or network.priority <= current.priority:
            continue
        if (
            presence is not None
            and now >= presence.strong + ROAM_AFTER
            and now >= due_at(state, network, world.settings)
        ):
            return network
    return None


def followed(world: ProvisioningWorld, interface: str) -> UsableNetwork | None:
    """Return the known network that another manager of the interface has joined."""
    link, association = world.facts.link(interface), world.facts.associations.get(interface)
    if link is None or association is None or link.manager in ("", OWN):
        return None
    return next((network for network in networks_for(world, interface) if network.ssid == association.ssid), None)
