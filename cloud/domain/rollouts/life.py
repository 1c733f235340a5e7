"""What becomes of a machine in a rollout, and of the rollout: pure functions of facts and the time.

Nothing here knows whether a fragment or a program is rolled out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

GRACE: Final = timedelta(seconds=60)
"""How long a machine may be offline or have more problems after a change: resources and programs restart."""


class MachineState(StrEnum):
    """State of a machine in a rollout. The values are stored."""

    PENDING = "pending"  # in a later stage
    WAITING = "waiting"  # it is to take the change
    OFFLINE = "offline"  # the same, but it is offline: the stage does not wait for it
    LATE = "late"  # it was online for long and has not taken the change: the stage does not wait for it
    UPDATED = "updated"  # it has the change, and is watched
    HEALTHY = "healthy"  # it has had the change for long enough, without new problems
    FAILED = "failed"
    SKIPPED = "skipped"  # it was deleted
    RETURNING = "returning"  # the rollout was reverted, and it has not reported that it went back
    RETURNED = "returned"


OPEN: Final = (MachineState.WAITING, MachineState.OFFLINE, MachineState.LATE, MachineState.UPDATED)
"""States of machines whose reports decide about the rollout."""
TAKING: Final = (MachineState.WAITING, MachineState.OFFLINE, MachineState.LATE)
"""States of machines that have not taken the change."""


class StagedRolloutState(StrEnum):
    """State of a rollout. The values are stored."""

    ACTIVE = "active"
    PAUSED = "paused"
    STOPPED = "stopped"  # by itself, because too many machines failed, or by a person
    FINISHED = "finished"  # given to all machines
    REVERTED = "reverted"  # taken back from all machines


ENDED: Final = (StagedRolloutState.FINISHED, StagedRolloutState.REVERTED)


@dataclass(frozen=True, slots=True)
class RolloutTiming:
    """How long a machine must be healthy, and may take to take the change while it is online."""

    soak: timedelta
    patience: timedelta
    late_fails: bool  # a machine that does not take the change has failed; otherwise it may have reasons to wait


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What is known of a machine now."""

    exists: bool = True
    online: bool = True
    runs: bool = False  # it reports the new revision or version
    reports: bool = True  # it reports what it runs at all
    concerned: bool = True  # it would get the new revision; only a look at the deadline of `expires` needs to know
    problems: int = 0
    rejected: str = ""  # why it rejects its configuration
    failure: str = ""  # why it went back from the new version


@dataclass(frozen=True, slots=True)
class Life:
    """A machine in a rollout. `up` and `problems` are from when it could take the change, at `offered`."""

    state: MachineState
    offered: datetime
    up: bool = True
    problems: int = 0
    taken: datetime | None = None
    worse: datetime | None = None
    reason: str = ""


def look(timing: RolloutTiming, life: Life, facts: MachineFacts, now: datetime) -> tuple[Life, datetime | None]:
    """Return a machine after a look at it, and when it is to be looked at again without a report; None for never."""
    if not facts.exists:
        return replace(life, state=MachineState.SKIPPED, reason="it was deleted"), None
    if life.state is MachineState.RETURNING:
        return (life, None) if facts.runs else (replace(life, state=MachineState.RETURNED), None)
    if life.state not in OPEN:
        return life, None
    if facts.failure:
        return _failed(life, facts.failure)
    if facts.rejected and facts.problems > life.problems:
        return _failed(life, f"it rejects the configuration: {facts.rejected}")
    if life.taken is None and facts.runs:
        life = replace(life, taken=now, worse=None, reason="")
    if life.taken is None:
        return _taking(timing, life, facts, now)
    return _soaking(timing, life, facts, now)


def expires(timing: RolloutTiming, life: Life, now: datetime) -> bool:
    """Return whether a machine that has not taken the change by now is late, or has failed."""
    return life.state in (MachineState.WAITING, MachineState.LATE) and life.up and now >= life.offered + timing.patience


def _taking(timing: RolloutTiming, life: Life, facts: MachineFacts, now: datetime) -> tuple[Life, datetime | None]:
    if not facts.online:
        if not life.up:
            return replace(life, state=MachineState.OFFLINE, worse=None), None
        worse = min(life.worse or now, now)
        if now - worse < GRACE:
            return replace(life, worse=worse), worse + GRACE
        if worse - life.offered <= max(timing.soak, GRACE):
            return _failed(life, "it went offline when it was to take the change")
        return replace(life, state=MachineState.OFFLINE, worse=None, up=False), None
    if life.state is MachineState.OFFLINE:
        life = replace(life, state=MachineState.WAITING, offered=now, up=True)
    if not life.up:
        life = replace(life, offered=now, up=True)
    life = replace(life, offered=min(life.offered, now), worse=None)
    deadline = life.offered + timing.patience
    if now < deadline:
        return replace(life, state=MachineState.WAITING), deadline
    text = "it is online and has not taken the change"
    if not facts.concerned:
        text = "its configuration does not use the fragment any more, or names another version"
    elif not facts.reports:
        text = "it is online and does not report which revision it runs"
    elif timing.late_fails:
        return _failed(life, text)
    return replace(life, state=MachineState.LATE, reason=text), None


def _soaking(timing: RolloutTiming, life: Life, facts: MachineFacts, now: datetime) -> tuple[Life, datetime | None]:
    taken = min(life.taken or now, now)  # the clock may have been set back
    life = replace(life, state=MachineState.UPDATED, taken=taken)
    if facts.online and facts.problems <= life.problems:
        life = replace(life, worse=None)
        if now - taken >= timing.soak:
            if not facts.runs:
                text = "it took the change, and does not report any more that it has it"
                return replace(life, state=MachineState.LATE, reason=text), None
            return replace(life, state=MachineState.HEALTHY, reason=""), None
        return life, taken + timing.soak
    worse = min(life.worse or now, now)
    if now - worse < GRACE:
        return replace(life, worse=worse), worse + GRACE
    if not facts.online:
        return _failed(life, "it went offline after it took the change")
    more = facts.problems - life.problems
    return _failed(life, f"it has {more} more {'problem' if more == 1 else 'problems'} than before the change")


def _failed(life: Life, reason: str) -> tuple[Life, None]:
    return replace(life, state=MachineState.FAILED, reason=reason), None


# ---- rollouts


class Move(StrEnum):
    """What a rollout does by itself. STAY comes with the reason, in words for people."""

    STAY = "stay"
    STOP = "stop"
    NEXT = "next"
    FINISH = "finish"


@dataclass(frozen=True, slots=True)
class Facts:
    """What decides about a rollout. `counts` are the machines of its stage in each state."""

    state: StagedRolloutState
    stage: int
    stages: int
    counts: Mapping[MachineState, int]
    failures: int = 0  # since it was started or resumed
    stop_after: int | None = None
    automatic: bool = True
    covers_all: bool = True


def decide(facts: Facts) -> tuple[Move, str]:
    """Return what a rollout does now, and why, or what it waits for."""
    if facts.state is not StagedRolloutState.ACTIVE:
        return Move.STAY, ""
    if facts.stop_after is not None and facts.failures > facts.stop_after:
        return Move.STOP, f"{_machines(facts.failures)} failed, more than {facts.stop_after}"
    counts = facts.counts
    if waiting := counts.get(MachineState.WAITING, 0):
        return Move.STAY, f"waits for {_machines(waiting)} of the stage to take the change"
    if updated := counts.get(MachineState.UPDATED, 0):
        return Move.STAY, f"watches {_machines(updated)} of the stage"
    tried = any(counts.get(state, 0) for state in (*OPEN, MachineState.FAILED))
    if tried and not counts.get(MachineState.HEALTHY, 0):
        return Move.STAY, "no machine of the stage is healthy with the change"
    last = facts.stage + 1 >= facts.stages
    if not facts.automatic:
        return Move.STAY, "the stage is complete" if not last else "all stages are complete"
    if not last:
        return Move.NEXT, ""
    return (Move.FINISH, "") if facts.covers_all else (Move.STAY, "all selected machines are done")


def _machines(count: int) -> str:
    return f"{count} {'machine' if count == 1 else 'machines'}"
