"""Which release a machine gets: pure functions of the targets in force, the rollouts, and facts about the machine."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from cloud.domain.releases.repository import Published
from schema import SemanticVersion
from uplink.releases import CHANNELS, STABLE, normal_platform


class RolloutState(Enum):
    """State of a rollout. The values are stored."""

    ACTIVE = "active"
    PAUSED = "paused"
    STOPPED = "stopped"  # by itself, because too many machines rolled back, or by a person
    FINISHED = "finished"  # released to all machines
    REVERTED = "reverted"  # taken back from all machines: they get the version before


@dataclass(frozen=True, slots=True)
class Rollout:
    """The gradual release of a version in the channel `stable`."""

    id: str
    program: str
    version: str
    percent: float  # of the machines that `tags` and `locations` select, above 0 and at most 100
    tags: frozenset[str] = frozenset()  # a machine needs one of them; empty for all
    locations: frozenset[str] = frozenset()  # a machine is in one of them or below; empty for all
    stop_after: int | None = None  # most machines that may roll back
    state: RolloutState = RolloutState.ACTIVE
    reason: str = ""
    staged: bool = False  # `included` of the facts decides, instead of percentage, tags and locations


@dataclass(frozen=True, slots=True)
class RolloutFacts:
    """What decides about a machine."""

    part: str
    platform: str  # as it reported it
    tags: frozenset[str] = frozenset()
    locations: frozenset[str] = frozenset()  # its location and those around it
    running: str = ""  # version of the program that it reported
    included: frozenset[str] = frozenset()  # ids of the rollouts in stages that have reached it


def choose(
    channel: str, targets: Iterable[Published], rollouts: Mapping[str, Rollout], facts: RolloutFacts
) -> Published | None:
    """Return the target of one program for a machine; None if there is none.

    `channel` is `stable`, `dev` or a semantic version. `rollouts` are those of the program, by version; they limit only
    `stable`. A version without one is released to all machines.
    """
    platform = normal_platform(facts.platform)
    usable = [target for target in targets if target.custom.platform == platform]
    if channel not in CHANNELS:
        return next((target for target in usable if target.custom.version == channel), None)
    in_channel = [target for target in usable if channel in target.custom.channels]
    for target in sorted(in_channel, key=lambda target: SemanticVersion.parse(target.custom.version), reverse=True):
        rollout = rollouts.get(target.custom.version) if channel == STABLE else None
        if rollout is None or gets(rollout, facts):
            return target
    return None


def gets(rollout: Rollout, facts: RolloutFacts) -> bool:
    """Return whether a machine gets the version of a rollout.

    While it is paused or stopped, only machines that run the version already keep it.
    """
    match rollout.state:
        case RolloutState.FINISHED:
            return True
        case RolloutState.ACTIVE:
            return selected(rollout, facts) or facts.running == rollout.version
        case RolloutState.PAUSED | RolloutState.STOPPED:
            return facts.running == rollout.version
        case RolloutState.REVERTED:
            return False


def selected(rollout: Rollout, facts: RolloutFacts) -> bool:
    """Return whether tags, location and percentage of a rollout select a machine.

    The share of a machine depends only on the rollout and the machine, so a higher percentage only adds machines.
    """
    if rollout.staged:
        return rollout.id in facts.included
    if rollout.tags and not rollout.tags & facts.tags:
        return False
    if rollout.locations and not rollout.locations & facts.locations:
        return False
    return share(rollout.id, facts.part) < rollout.percent


def share(rollout: str, part: str) -> float:
    """Return a number from 0 to 100, without 100, that is distributed evenly over machines and differs by rollout."""
    digest = hashlib.sha256(f"{rollout}\n{part}".encode()).digest()
    return int.from_bytes(digest[:6]) * 100 / _RANGE


def must_stop(rollout: Rollout, rolled_back: Collection[str]) -> bool:
    """Return whether an active rollout must stop, because more machines rolled back than it allows."""
    return (
        rollout.state is RolloutState.ACTIVE
        and rollout.stop_after is not None
        and len(set(rolled_back)) > rollout.stop_after
    )


_RANGE: Final = 1 << 48
