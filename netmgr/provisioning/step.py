"""A step of provisioning. Pure."""

from __future__ import annotations

import math
from typing import Final, assert_never

from msgspec.structs import replace

from netmgr.model.decision import NetworkDecision
from netmgr.model.events import Joined, JoinFailed, Left
from netmgr.provisioning.candidates import client_interface, hotspot_interface, joins_during_hotspot
from netmgr.provisioning.conditions import deadlines, good, online, reboot_at
from netmgr.provisioning.states import (
    ABSENT,
    HEARD,
    LEAVE_PAUSE,
    PERMANENT,
    ROAM_SIGNAL,
    Entered,
    EnteringFinished,
    Event,
    Forced,
    Interacted,
    JoinAttempt,
    JoinTarget,
    Mode,
    NetworkPresence,
    ProvisioningOutcome,
    ProvisioningState,
    ProvisioningWorld,
)
from netmgr.provisioning.table import transition
from netmgr.provisioning.targets import begun, failed, target_deadlines, with_targets

MAX_TRANSITIONS: Final = 4
"""Rows that apply in one step; a longer chain would be a loop of the table."""
MAX_MEMORY: Final = 1000
"""Labels that are remembered."""


def step(state: ProvisioningState, world: ProvisioningWorld, event: Event | None, now: float) -> ProvisioningOutcome:
    """Return the next state and the decision, after an event or a change of the world, or because time has passed."""
    state = _observed(state, world, now)
    if event is not None:
        state = _after(state, world, event, now)
    reasons: list[str] = []
    for _ in range(MAX_TRANSITIONS):
        state = with_targets(state, world, now)
        row = transition(state, world, now)
        if row is None:
            break
        state = _entering(state, world, row.after, now)
        reasons.append(row.why)
    state = with_targets(state, world, now)
    reboot = now >= reboot_at(state, world, now)
    if reboot:
        state = replace(state, reboot_asked=now, reboots=state.reboots + 1)
    times = [*deadlines(state, world, now), *target_deadlines(state, world, now)]
    return ProvisioningOutcome(
        state=state,
        decision=_decision(state, world),
        reboot=reboot,
        wake=min((time for time in times if time > now), default=math.inf),
        reasons=tuple(reasons),
    )


def _observed(state: ProvisioningState, world: ProvisioningWorld, now: float) -> ProvisioningState:
    """Return the state after a look at the world."""
    settings, heard = world.settings, dict(state.heard)
    tried = dict(state.tried)
    absent = ABSENT if world.facts.associations else HEARD
    for network in settings.networks:
        announced = [point for point in world.facts.access_points if network.ssid and point.ssid == network.ssid]
        if not announced:
            continue
        best = max(announced, key=lambda point: point.signal)
        last, before = max(point.seen for point in announced), heard.get(network.label)
        is_new = before is None or last > before.last + absent
        if is_new and network.label in tried and tried[network.label].failure not in PERMANENT:
            del tried[network.label]  # it was away, and may be another one
        strong = (
            math.inf if best.signal < ROAM_SIGNAL else last if before is None or is_new else min(before.strong, last)
        )
        heard[network.label] = NetworkPresence(
            first=last if before is None or is_new else before.first, last=last, strong=strong
        )
    labels = [network.label for network in settings.networks][:MAX_MEMORY]
    state = replace(
        state,
        heard={label: presence for label, presence in heard.items() if label in labels},
        tried={label: entry for label, entry in tried.items() if label in labels},
    )
    is_online = online(state, world, now)
    if is_online or state.online:  # until now, or since now
        state = replace(state, online=is_online, online_at=now)
    if not is_online:
        return state
    lasting = state.mode is Mode.ONLINE and now >= state.since + settings.reboot_after_offline
    return replace(
        state,
        ever_online=state.ever_online or good(state, world, now),
        reboots=0 if lasting else state.reboots,
    )


def _after(state: ProvisioningState, world: ProvisioningWorld, event: Event, now: float) -> ProvisioningState:
    """Return the state after an event."""
    match event:
        case JoinFailed():
            return failed(state, world, event.interface, event.label, event.failure, now, event.detail)
        case Joined():
            return state
        case Left():
            target = state.targets.get(event.interface)
            if target is None or target.label != event.label:
                return state
            return replace(
                state, targets={**state.targets, event.interface: JoinTarget(label=event.label, since=now, lost=True)}
            )
        case Interacted():
            return replace(state, interaction=now)
        case Entered():
            leave_at = now if event.now else math.inf
            return replace(state, interaction=now, entered=event.label, leave_at=leave_at)
        case EnteringFinished():
            return replace(state, interaction=now, leave_at=now + LEAVE_PAUSE)
        case Forced():
            return replace(state, forced_until=now + world.settings.retry)
        case _:
            assert_never(event)


def _entering(state: ProvisioningState, world: ProvisioningWorld, mode: Mode, now: float) -> ProvisioningState:
    """Return the state after a change of the mode."""
    entered = state.entered
    if state.mode is Mode.HOTSPOT:
        state = replace(state, left_hotspot=now, forced_until=-math.inf)
    if state.mode is Mode.HOTSPOT or mode is Mode.TESTING:
        state = replace(state, entered="", leave_at=math.inf)
    state = replace(state, mode=mode, since=now)
    if mode is Mode.TESTING:
        attempt = JoinAttempt(label=entered, progress="joining", at=now)
        return begun(replace(state, targets={}, attempt=attempt), client_interface(world), entered, now)
    if mode is Mode.HOTSPOT and not joins_during_hotspot(world):
        return replace(state, targets={})
    return state


def _decision(state: ProvisioningState, world: ProvisioningWorld) -> NetworkDecision:
    hosting = state.mode is Mode.HOTSPOT or (state.mode is Mode.TESTING and joins_during_hotspot(world))
    return NetworkDecision(
        join={name: target.label for name, target in state.targets.items()},
        hotspot=hotspot_interface(world) if hosting else "",
    )
