"""The function that advances a record through the steps of an update. Pure.

The caller delivers events, one at a time. For each it stores the record of the decision first, and carries out the
action then, after it has ended the previous one. So after a power loss the record may be ahead of the disk by one
action, never behind; each action can be repeated. `release_to_start` says at any moment which release is to run.

`now` is seconds since 1970 and must not be set back or forward while the caller runs: read the clock once, and add the
seconds of a monotonic clock. To add jitter, deliver `DeadlinePassed` a little late.

This module does not order versions: whether an older one may be offered is decided where the offer is authenticated.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Final, NamedTuple

from msgspec.structs import replace

from agent.update.events import (
    DeadlinePassed,
    Event,
    Failed,
    HoldRequested,
    Offered,
    ProgramObserved,
    Resumed,
    RollBackRequested,
    Started,
    Succeeded,
    WindowOpened,
)
from agent.update.record import (
    HISTORY,
    QuarantinedRelease,
    Release,
    ReleaseOffer,
    ReleaseSlots,
    UpdateOutcome,
    UpdateProgress,
    UpdateRecord,
    UpdateResult,
    UpdateStep,
)
from agent.update.table import HOUR, MINUTE, PREPARING, TABLE
from support import doubled

FIRST_PAUSE: Final = 10.0  # seconds after the first failure; doubled after each further one
LONGEST_PAUSE: Final = 3600.0
MAX_TRIES: Final = 3  # starts of a release in TRIAL and RECOVER; attempts of SWITCH
STAY_UP: Final = 600.0  # seconds that a release must run without a break before it is confirmed
MAX_RESUMED: Final = 10  # starts of the agent during a trial, of which each gives it another full limit
MAX_HOLD: Final = 30 * 24 * HOUR  # seconds


class Action(Enum):
    """What the caller does when no step begins."""

    NOTHING = "continue what is being done"
    PAUSE = "do nothing until the deadline"
    CLEAN = "end what is being done; delete all files that are not in a slot"


class UpdateDecision(NamedTuple):
    """A record to store, and then an action: that of a step, or another."""

    record: UpdateRecord
    action: UpdateStep | Action


def release_to_start(record: UpdateRecord) -> Release:
    """Return the release that is to run: the target during its trial, otherwise `current`."""
    progress = record.progress
    return progress.target if progress is not None and progress.step is UpdateStep.TRIAL else record.slots.current


def is_held(record: UpdateRecord, now: float) -> bool:
    """Return whether a person holds updates. A hold that ends later than MAX_HOLD is void: the clock was wrong then."""
    return now < record.hold_until <= now + MAX_HOLD


def subject(record: UpdateRecord) -> Release:
    """Return the release that the action of the step is about; events about another one are outdated."""
    progress = record.progress
    if progress is None or progress.step in (UpdateStep.ROLL_BACK, UpdateStep.RECOVER):
        return record.slots.current
    return progress.target


def pause(attempts: int) -> float:
    """Return the seconds to wait after so many failed attempts."""
    return doubled(FIRST_PAUSE, LONGEST_PAUSE, attempts)


def advance(record: UpdateRecord, event: Event, now: float) -> UpdateDecision:
    """Return what an event leads to. An event that does not fit the step changes nothing."""
    progress = record.progress
    match event:
        case Offered(offer):
            return _offered(record, offer, now)
        case HoldRequested(until):
            if not math.isfinite(until):
                raise ValueError(f"a hold must end at a finite time, not {until}")
            return UpdateDecision(replace(record, hold_until=min(until, now + MAX_HOLD)), Action.NOTHING)
        case RollBackRequested():
            return _roll_back_requested(record, now)
        case Resumed():
            return _resumed(record, now)
    if progress is None:
        return UpdateDecision(record, Action.NOTHING)
    match event:
        case DeadlinePassed():
            return _late(record, progress, now) if now >= progress.deadline else UpdateDecision(record, Action.NOTHING)
        case WindowOpened(offline) if progress.step is UpdateStep.WAIT and (
            progress.explicit or not is_held(record, now)
        ):
            return _enter(record, replace(progress, offline_before=offline), UpdateStep.SWITCH, now)
        case Succeeded(step, sha256) if _fits(record, progress, step, sha256) and not progress.pausing:
            following = TABLE[step].then
            return _enter(record, progress, following, now) if following else UpdateDecision(record, Action.NOTHING)
        case Failed(step, sha256, reason, permanent) if _fits(record, progress, step, sha256) and not progress.pausing:
            return _failed(record, progress, reason, permanent, now)
        case Started(sha256) if (
            progress.step in (UpdateStep.TRIAL, UpdateStep.RECOVER) and sha256 == subject(record).sha256
        ):
            if progress.attempts >= MAX_TRIES:
                reason = f"it was not confirmed: it was started {MAX_TRIES} times, or ran too long"
                return _failed(record, progress, reason, True, now)
            return UpdateDecision(
                replace(record, progress=replace(progress, attempts=progress.attempts + 1)), Action.NOTHING
            )
        case ProgramObserved() if event.sha256 == subject(record).sha256:
            return _observed(record, progress, event, now)
    return UpdateDecision(record, Action.NOTHING)


def _fits(record: UpdateRecord, progress: UpdateProgress, step: UpdateStep, sha256: str) -> bool:
    return step is progress.step and sha256 == subject(record).sha256


def _enter(record: UpdateRecord, progress: UpdateProgress, step: UpdateStep, now: float) -> UpdateDecision:
    """Begin a step. Failed attempts count until WAIT, so that a bad file is not downloaded again without a pause."""
    entered = UpdateProgress(
        step,
        progress.target,
        began=progress.began,
        since=now,
        deadline=now + TABLE[step].limit,
        attempts=progress.attempts if step in PREPARING else 0,
        explicit=progress.explicit,
        error="" if step is UpdateStep.TRIAL else progress.error,
        offline_before=progress.offline_before,
        following=progress.following,
    )
    return UpdateDecision(replace(record, progress=entered), step)


def _offered(record: UpdateRecord, offer: ReleaseOffer | None, now: float) -> UpdateDecision:
    progress = record.progress
    if progress is None:
        return _begin(record, offer, now)
    if progress.step in (UpdateStep.ROLL_BACK, UpdateStep.RECOVER):
        return UpdateDecision(_follow(record, progress, offer, now), Action.NOTHING)
    if offer is not None and offer.release.sha256 == progress.target.sha256:
        explicit = progress.explicit or offer.explicit
        return UpdateDecision(replace(record, progress=replace(progress, explicit=explicit)), Action.NOTHING)
    reason = f"replaced by version {offer.release.version}" if offer else "no longer offered"
    record = _end(record, progress.target, UpdateResult.SUPERSEDED, reason, progress.began, now)
    if progress.step in (UpdateStep.SWITCH, UpdateStep.TRIAL):
        return _enter(record, replace(progress, following=offer, error=reason), UpdateStep.ROLL_BACK, now)
    return _begin(replace(record, progress=None), offer, now, otherwise=Action.CLEAN)


def _follow(record: UpdateRecord, progress: UpdateProgress, offer: ReleaseOffer | None, now: float) -> UpdateRecord:
    """Replace what is installed after the roll-back. A release in quarantine is not, unless a person asked for it."""
    following = progress.following
    same = following is not None and offer is not None and following.release.sha256 == offer.release.sha256
    if offer is not None and not same and not offer.explicit and record.is_quarantined(offer.release):
        offer = None
    if following is not None and (offer is None or offer.release.sha256 != following.release.sha256):
        record = _end(record, following.release, UpdateResult.SUPERSEDED, "replaced before it began", now, now)
    elif following is not None and offer is not None:
        offer = ReleaseOffer(offer.release, offer.explicit or following.explicit)
    return replace(record, progress=replace(progress, following=offer))


def _begin(
    record: UpdateRecord, offer: ReleaseOffer | None, now: float, otherwise: Action = Action.NOTHING
) -> UpdateDecision:
    """Begin an update while none is in progress, unless the offer is current or in quarantine."""
    if offer is None or offer.release.sha256 == record.slots.current.sha256:
        return UpdateDecision(record, otherwise)
    if record.is_quarantined(offer.release) and not offer.explicit:
        return UpdateDecision(record, otherwise)
    progress = UpdateProgress(UpdateStep.RESOLVE, offer.release, now, now, now, explicit=offer.explicit)
    return _enter(record, progress, UpdateStep.RESOLVE, now)


def _finish(record: UpdateRecord, progress: UpdateProgress, now: float) -> UpdateDecision:
    return _begin(replace(record, progress=None), progress.following, now, otherwise=Action.CLEAN)


def _resumed(record: UpdateRecord, now: float) -> UpdateDecision:
    progress = record.progress
    if progress is None:
        return UpdateDecision(record, Action.CLEAN)
    if progress.pausing:  # in full, so that a caller that crashes in a loop does not shorten it
        paused = replace(progress, deadline=now + pause(progress.attempts))
        return UpdateDecision(replace(record, progress=paused), Action.PAUSE)
    step = TABLE[progress.step].again
    if step in (UpdateStep.TRIAL, UpdateStep.RECOVER) and progress.resumed >= MAX_RESUMED:
        return _given_up(record, progress, f"the agent was started again {MAX_RESUMED} times before it was over", now)
    again = replace(progress, step=step, deadline=now + TABLE[step].limit, resumed=progress.resumed + 1)
    return UpdateDecision(replace(record, progress=again), step)


def _given_up(record: UpdateRecord, progress: UpdateProgress, reason: str, now: float) -> UpdateDecision:
    """End a trial that takes too long, or a recovery: it did not crash, and no other release is better."""
    if progress.step is UpdateStep.RECOVER:
        return _finish(record, progress, now)
    return _failed(record, progress, reason, True, now)


def _late(record: UpdateRecord, progress: UpdateProgress, now: float) -> UpdateDecision:
    step, row = progress.step, TABLE[progress.step]
    if progress.pausing:
        again = replace(progress, since=now, deadline=now + row.limit, pausing=False)
        return UpdateDecision(replace(record, progress=again), step)
    if step is UpdateStep.WAIT:
        return _enter(record, progress, UpdateStep.RESOLVE, now)
    reason = f"{step.value} took longer than {row.limit / MINUTE:g} minutes"
    if step is UpdateStep.TRIAL and progress.error:
        reason = f"{reason}: {progress.error}"
    if step in (UpdateStep.TRIAL, UpdateStep.RECOVER):
        return _given_up(record, progress, reason, now)
    return _failed(record, progress, reason, False, now)


def _failed(record: UpdateRecord, progress: UpdateProgress, reason: str, permanent: bool, now: float) -> UpdateDecision:
    step = progress.step
    attempts = progress.attempts + 1
    if step in (UpdateStep.ROLL_BACK, UpdateStep.RECOVER):
        release = fallback(record)
        if permanent and release is not None:
            return _fall_back(record, progress, release, reason, now)
        if step is UpdateStep.RECOVER:
            if permanent:  # nothing is left to go back to
                return _finish(record, progress, now)
            return UpdateDecision(replace(record, progress=replace(progress, error=reason)), Action.NOTHING)
    elif step is UpdateStep.TRIAL and not permanent:  # the launcher counts the starts
        return UpdateDecision(replace(record, progress=replace(progress, error=reason)), Action.NOTHING)
    elif step in (UpdateStep.SWITCH, UpdateStep.TRIAL) and (permanent or attempts >= MAX_TRIES):
        record = _end(record, progress.target, UpdateResult.ROLLED_BACK, reason, progress.began, now)
        return _enter(_quarantine(record, progress.target, reason, now), replace(progress, error=reason),
                      UpdateStep.ROLL_BACK, now)  # fmt: skip
    elif permanent:
        record = _end(record, progress.target, UpdateResult.REJECTED, reason, progress.began, now)
        return _finish(_quarantine(record, progress.target, reason, now), progress, now)
    paused = replace(progress, step=TABLE[step].again, since=now, deadline=now + pause(attempts), attempts=attempts,
                     pausing=True, error=reason)  # fmt: skip
    return UpdateDecision(replace(record, progress=paused), Action.PAUSE)


def _observed(record: UpdateRecord, progress: UpdateProgress, facts: ProgramObserved, now: float) -> UpdateDecision:
    """Confirm the release if all conditions are met; otherwise note the first that is not."""
    if progress.step not in (UpdateStep.TRIAL, UpdateStep.RECOVER):
        return UpdateDecision(record, Action.NOTHING)
    missing = ""
    if not facts.served:
        missing = "it does not answer requests"
    elif facts.up < STAY_UP:
        missing = f"it has not run for {STAY_UP / MINUTE:g} minutes without a break"
    elif progress.step is UpdateStep.TRIAL and not (
        facts.configured or (facts.offline and facts.offline == progress.offline_before)
    ):
        missing = "it has not fetched its configuration, and the machine was not offline for this reason before"
    if missing:
        return UpdateDecision(replace(record, progress=replace(progress, error=missing)), Action.NOTHING)
    if progress.step is UpdateStep.RECOVER:
        return _finish(record, progress, now)
    old, target = record.slots.current, progress.target
    record = _end(record, target, UpdateResult.UPDATED, "", progress.began, now)
    previous = None if record.is_quarantined(old) else old
    quarantine = tuple(entry for entry in record.quarantine if entry.sha256 != target.sha256)
    slots = ReleaseSlots(target, previous, record.slots.factory)
    return _finish(replace(record, slots=slots, quarantine=quarantine), progress, now)


def _roll_back_requested(record: UpdateRecord, now: float) -> UpdateDecision:
    progress, reason = record.progress, "a person asked for the roll-back"
    if progress is not None and progress.step in (UpdateStep.ROLL_BACK, UpdateStep.RECOVER):
        return UpdateDecision(record, Action.NOTHING)
    if progress is not None and progress.step in (UpdateStep.SWITCH, UpdateStep.TRIAL):
        return _failed(record, progress, reason, True, now)
    release = fallback(record)
    if release is None:
        return UpdateDecision(record, Action.NOTHING)
    if progress is not None:
        record = _end(record, progress.target, UpdateResult.SUPERSEDED, reason, progress.began, now)
    leaving = UpdateProgress(UpdateStep.ROLL_BACK, record.slots.current, now, now, now)
    return _fall_back(_quarantine(record, leaving.target, reason, now), leaving, release, reason, now)


def fallback(record: UpdateRecord) -> Release | None:
    """Return the release below `current`: previous unless in quarantine, then factory in any case; None if neither."""
    slots = record.slots
    if slots.previous is not None and not record.is_quarantined(slots.previous):
        return slots.previous
    return slots.factory if slots.factory is not None and slots.factory.sha256 != slots.current.sha256 else None


def _fall_back(
    record: UpdateRecord, progress: UpdateProgress, release: Release, reason: str, now: float
) -> UpdateDecision:
    """Leave `current` for an older release. It is not quarantined: it was confirmed once."""
    left = record.slots.current
    record = _end(record, left, UpdateResult.ROLLED_BACK, reason, progress.began, now, to=release)
    record = replace(record, slots=ReleaseSlots(release, None, record.slots.factory))
    return _enter(record, replace(progress, target=left, error=reason), UpdateStep.ROLL_BACK, now)


def _quarantine(record: UpdateRecord, release: Release, reason: str, now: float) -> UpdateRecord:
    """Add a release to the quarantine, and remove it from the slot `previous`."""
    kept = tuple(entry for entry in record.quarantine if entry.sha256 != release.sha256)
    entry = QuarantinedRelease(release.sha256, release.version, reason, now)
    slots = record.slots
    if slots.previous is not None and slots.previous.sha256 == release.sha256:
        slots = replace(slots, previous=None)
    return replace(record, slots=slots, quarantine=(*kept, entry))


def _end(
    record: UpdateRecord,
    target: Release,
    result: UpdateResult,
    reason: str,
    began: float,
    now: float,
    to: Release | None = None,
) -> UpdateRecord:
    """Append an outcome: an update to `target`, or, with `to`, the way back from `target`."""
    source, aim = (record.slots.current, target) if to is None else (target, to)
    outcome = UpdateOutcome(source.version, aim.version, aim.sha256, result, reason, began, now)
    return replace(record, history=(*record.history, outcome)[-HISTORY:])
