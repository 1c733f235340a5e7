"""Which network each wifi interface joins. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec.structs import replace

from netmgr.model.events import JoinFailure
from netmgr.model.network import UsableNetwork, same_connection
from netmgr.provisioning.candidates import (
    budget_at,
    candidates,
    client_interface,
    due_at,
    followed,
    hotspot_interface,
    joins_during_hotspot,
    networks_for,
    preferred,
)
from netmgr.provisioning.states import (
    HEARD,
    HOUR,
    JOIN_LIMIT,
    MISSED,
    PROOF_LIMIT,
    ROAM_AFTER,
    JoinAttempt,
    JoinTarget,
    Mode,
    ProvisioningState,
    ProvisioningWorld,
    Tried,
)


def interfaces(state: ProvisioningState, world: ProvisioningWorld) -> list[str]:
    """Return the wifi interfaces that may join networks now."""
    hosting = hotspot_interface(world) if state.mode is Mode.HOTSPOT else ""
    names = [link.name for link in world.facts.links if link.kind == "wifi"]
    return [name for name in names if name != hosting or joins_during_hotspot(world)]


def with_targets(state: ProvisioningState, world: ProvisioningWorld, now: float) -> ProvisioningState:
    """Return the state with the network that each interface joins."""
    free = interfaces(state, world)
    state = replace(state, targets={name: target for name, target in state.targets.items() if name in free})
    for name in free:
        state = _checked(state, world, name, now)
        if state.mode is not Mode.TESTING:
            state = _chosen(state, world, name, now)
    return state


def failed(
    state: ProvisioningState,
    world: ProvisioningWorld,
    interface: str,
    label: str,
    failure: JoinFailure,
    now: float,
    detail: str = "",
) -> ProvisioningState:
    """Return the state after an attempt has failed. Failures of what is not joined any more are ignored."""
    target, network = state.targets.get(interface), network_of(world, label)
    if target is None or target.label != label:
        return state
    targets = {name: other for name, other in state.targets.items() if name != interface}
    if network is None:
        return replace(state, targets=targets)
    before = state.tried.get(label)
    count = before.failures if before is not None and same_connection(before.network, network) else 0
    tried = Tried(network=network, failures=count + 1, last=now, failure=failure, detail=detail)
    state = replace(state, targets=targets, tried={**state.tried, label: tried})
    if state.attempt is None or state.attempt.label != label or state.attempt.progress == "failed":
        return state
    return replace(state, attempt=JoinAttempt(label=label, progress="failed", failure=failure, detail=detail, at=now))


def begun(state: ProvisioningState, interface: str, label: str, now: float) -> ProvisioningState:
    """Return the state after an attempt has begun."""
    joins = (*(time for time in state.joins if time > now - HOUR), now)
    return replace(state, joins=joins, targets={**state.targets, interface: JoinTarget(label=label, since=now)})


def network_of(world: ProvisioningWorld, label: str) -> UsableNetwork | None:
    """Return the network with a label."""
    return next((network for network in world.settings.networks if network.label == label), None)


def is_joined(world: ProvisioningWorld, interface: str, network: UsableNetwork) -> bool:
    """Return whether the interface is associated with the network and has an address."""
    link, association = world.facts.link(interface), world.facts.associations.get(interface)
    client = world.facts.clients.get(interface)
    if link is None or association is None or association.ssid != network.ssid:
        return False
    if client is not None and not same_connection(client, network):
        return False
    return any(not address.value.is_link_local for address in link.addresses)


def _checked(state: ProvisioningState, world: ProvisioningWorld, interface: str, now: float) -> ProvisioningState:
    """Return the state after a look at how far the attempt of an interface is."""
    target = state.targets.get(interface)
    network = network_of(world, target.label) if target is not None else None
    if target is None:
        return state
    if network is None or network not in networks_for(world, interface):
        return replace(state, targets={name: entry for name, entry in state.targets.items() if name != interface})
    if not is_joined(world, interface, network):
        if target.joined < math.inf:  # lost: it has as long to come back as it had to be joined
            return _with(state, interface, JoinTarget(label=target.label, since=now, lost=True))
        if target.lost and _is_away(state, world, target):
            return failed(state, world, interface, target.label, JoinFailure.NOT_FOUND, now)
        if now < target.since + JOIN_LIMIT:
            return state
        associated = interface in world.facts.associations
        failure = JoinFailure.NO_ADDRESS if associated else JoinFailure.TIMEOUT
        return failed(state, world, interface, target.label, failure, now)
    if target.joined == math.inf:
        target = replace(target, joined=now)
        state = _with(state, interface, target)
        if state.attempt is not None and state.attempt.label == target.label:
            state = replace(state, attempt=JoinAttempt(label=target.label, progress="joined", at=now))
    if not world.settings.needs_internet or not world.configured or world.facts.cloud.get(interface):
        return replace(state, tried={label: entry for label, entry in state.tried.items() if label != target.label})
    if now >= target.joined + PROOF_LIMIT:
        failure = world.facts.unproved.get(interface, JoinFailure.NO_INTERNET)
        return failed(state, world, interface, target.label, failure, now)
    return state


def _is_away(state: ProvisioningState, world: ProvisioningWorld, target: JoinTarget) -> bool:
    """Return whether other networks were heard for MISSED seconds after the loss of this one, but it was not."""
    presence = state.heard.get(target.label)
    latest = max((point.seen for point in world.facts.access_points), default=-math.inf)
    return latest > target.since + MISSED and (presence is None or presence.last <= target.since)


def _chosen(state: ProvisioningState, world: ProvisioningWorld, interface: str, now: float) -> ProvisioningState:
    """Return the state with the next network of an interface, if it joins none or a preferred one is there."""
    target = state.targets.get(interface)
    network = followed(world, interface)
    if network is not None and (target is None or target.label != network.label):
        target = JoinTarget(label=network.label, since=now, joined=now)
        state = _with(state, interface, target)
    if now < budget_at(state):
        return state
    if target is None:
        due = [
            entry for entry in candidates(state, world, interface, now) if now >= due_at(state, entry, world.settings)
        ]
        return begun(state, interface, due[0].label, now) if due else state
    if target.joined <= now:
        better = preferred(state, world, interface, target.label, now)
        if better is not None:
            return begun(state, interface, better.label, now)
    return state


def _with(state: ProvisioningState, interface: str, target: JoinTarget) -> ProvisioningState:
    return replace(state, targets={**state.targets, interface: target})


def target_deadlines(state: ProvisioningState, world: ProvisioningWorld, now: float) -> Iterator[float]:
    """Yield the times at which a target may change by itself."""
    for name, target in state.targets.items():
        yield target.since + JOIN_LIMIT if target.joined == math.inf else target.joined + PROOF_LIMIT
        for network in networks_for(world, name):
            presence = state.heard.get(network.label)
            if presence is not None and presence.strong < math.inf:
                yield presence.strong + ROAM_AFTER
    for network in networks_for(world, client_interface(world)):
        yield max(due_at(state, network, world.settings), budget_at(state))
        if network.hidden and network.label in state.tried:
            yield state.tried[network.label].last + HEARD
        if network.label in state.heard:
            yield state.heard[network.label].last + HEARD
