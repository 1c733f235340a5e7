"""Conditions of the table of provisioning. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from netmgr.model.facts import NetworkLink
from netmgr.provisioning.candidates import appeared, hotspot_interface, joins_during_hotspot
from netmgr.provisioning.states import (
    JOIN_LIMIT,
    MAX_REBOOT_INTERVAL,
    REBOOT_WAIT,
    Mode,
    ProvisioningState,
    ProvisioningWorld,
)
from support import doubled


def connected(world: ProvisioningWorld) -> bool:
    """Return whether an interface has an address and a default route through a link that works."""
    live = {link.name for link in world.facts.links if link.carrier and link.kind != "other" and has_address(link)}
    return any(route.interface in live and route.destination.prefixlen == 0 for route in world.facts.routes)


def has_address(link: NetworkLink) -> bool:
    """Return whether a link has an address that is not only for the link itself."""
    return any(not address.value.is_link_local for address in link.addresses)


def online(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether the device counts as online: a connection, or an answer of the cloud if that is needed.

    An unconfigured device cannot recognize the cloud's answer, so a connection is enough.
    """
    if world.settings.needs_internet and world.configured:
        return any(world.facts.cloud.values())
    return connected(world) or any(world.facts.cloud.values())


def good(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether nothing is left to provision."""
    return world.configured and online(state, world, now)


def idle(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether no person is active."""
    return now >= state.interaction + world.settings.user_idle


def forced(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether a person has requested the hotspot."""
    return now < state.forced_until


def can_host(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether there is a hotspot to start, and a radio for it."""
    return world.settings.hotspot is not None and hotspot_interface(world) != ""


def has_entry(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether a person has entered a network that was not tried yet."""
    return any(network.label == state.entered for network in world.settings.networks)


def has_left(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether a person has finished entering."""
    return now >= state.leave_at


def leaves(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether what was entered is to be used: a person has finished, or has been idle."""
    return has_left(state, world, now) or idle(state, world, now)


def hotspot_is_due(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether the hotspot is due because the device is offline."""
    return now >= hotspot_due_at(state, world)


def hotspot_due_at(state: ProvisioningState, world: ProvisioningWorld) -> float:
    """Return the time at which an offline device starts the hotspot.

    A device that knows no network starts it at once. After a hotspot, known networks have as long again.
    """
    has_networks = any(network.kind == "wifi" for network in world.settings.networks)
    offline = max(state.online_at, state.started)
    wait = world.settings.offline_before_hotspot
    if not has_networks and not any(link.carrier and link.kind == "wired" for link in world.facts.links):
        wait = 0.0
    return max(offline + wait, state.left_hotspot + world.settings.offline_before_hotspot)


def retry_is_due(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether the hotspot ends for a while, so that known networks are tried: they appeared, or it is time to.

    It need not end if networks can be joined meanwhile.
    """
    if joins_during_hotspot(world) or not any(network.kind == "wifi" for network in world.settings.networks):
        return False
    return now >= state.since + world.settings.retry or appeared(state, world, now)


def tested(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether the test of the entered network has ended with success."""
    needs_cloud = world.settings.needs_internet and world.configured
    return any(
        target.joined <= now and (not needs_cloud or world.facts.cloud.get(name, False))
        for name, target in state.targets.items()
    )


def test_has_failed(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether the test of the entered network has ended without success."""
    return not state.targets or now >= state.since + 2 * JOIN_LIMIT


def reboot_interval(state: ProvisioningState, world: ProvisioningWorld) -> float:
    """Return the seconds offline after which the device reboots: doubled with each reboot in a row."""
    first = world.settings.reboot_after_offline
    if not first or not state.ever_online:
        return math.inf
    return doubled(first, max(first, MAX_REBOOT_INTERVAL), state.reboots + 1)


def reboot_at(state: ProvisioningState, world: ProvisioningWorld, now: float) -> float:
    """Return the time of the next reboot; infinity if there is none. A person who is active delays it."""
    if good(state, world, now) or state.mode is Mode.TESTING:
        return math.inf
    due = max(state.online_at, state.started) + reboot_interval(state, world)
    return max(due, state.interaction + world.settings.user_idle, state.forced_until, state.reboot_asked + REBOOT_WAIT)


def deadlines(state: ProvisioningState, world: ProvisioningWorld, now: float) -> Iterator[float]:
    """Yield the times at which a condition may become true by itself."""
    settings = world.settings
    yield state.interaction + settings.user_idle
    yield state.forced_until
    yield state.leave_at
    yield hotspot_due_at(state, world)
    yield reboot_at(state, world, now)
    yield state.since + settings.retry
    yield state.since + settings.reboot_after_offline
    if state.mode is Mode.TESTING:
        yield state.since + 2 * JOIN_LIMIT
