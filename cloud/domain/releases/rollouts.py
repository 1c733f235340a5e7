"""Rollouts in the database: their state, and how the machines fared."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.domain.machines.machines import PartRecord
from cloud.domain.organizations.tags import tags_in
from cloud.domain.organizations.tenants import above, location, missing
from cloud.domain.releases import decision, repository
from cloud.domain.releases.decision import Rollout, RolloutFacts, RolloutState
from cloud.store.sql import Sql, inserted
from cloud.values.limits import ROLLOUTS, TAG
from cloud.values.names import new_id
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError
from uplink.releases import DEV, PROGRAMS, STABLE

MAX_SELECTED: Final = 100
"""Tags, and locations, of one rollout."""
ROLLED_BACK: Final = "rolled_back"
FAILED: Final = (ROLLED_BACK, "rejected")
"""Outcomes of updates that failed."""


@dataclass(frozen=True, slots=True)
class StoredRollout:
    """A rollout with its times. Roll-backs that were reported before `counted` are not counted."""

    rollout: Rollout
    created: datetime
    changed: datetime
    counted: datetime


@dataclass(frozen=True, slots=True)
class RolloutProgress:
    """How a machine fares with the version of a rollout.

    `state` is `updated`, `rolled_back`, `rejected`, `superseded`, a step of its update, or `waiting`.
    """

    part: str
    name: str
    machine: str
    location: str
    state: str
    version: str  # that it runs
    reason: str = ""
    since: datetime | None = None


def rollouts(sql: Sql, owner: str) -> list[StoredRollout]:
    """Return all rollouts of an organization, newest first."""
    return [_stored(row) for row in sql.rows(f"{_ALL} WHERE organization_id = ? ORDER BY created DESC", owner)]


def of_program(sql: Sql, owner: str, program: str) -> dict[str, Rollout]:
    """Return the rollouts of a program by version."""
    rows = sql.rows(f"{_ALL} WHERE organization_id = ? AND program = ?", owner, program)
    return {row["version"]: _stored(row).rollout for row in rows}


def rollout(sql: Sql, owner: str, program: str, version: str) -> StoredRollout:
    """Return one rollout; NOT_FOUND."""
    row = sql.row(f"{_ALL} WHERE organization_id = ? AND program = ? AND version = ?", owner, program, version)
    if row is None:
        raise MachineError(
            f"there is no rollout of {program} {version[:60]}",
            kind=ErrorKind.NOT_FOUND,
            remedy="start one: `machine cloud releases rollout start`",
        )
    return _stored(row)


def start(
    sql: Sql,
    owner: str,
    program: str,
    version: str,
    now: datetime,
    *,
    percent: float,
    tags: Collection[str] = (),
    locations: Collection[str] = (),
    stop_after: int | None = None,
    staged: str = "",
) -> StoredRollout:
    """Start a rollout, or widen one that is not finished to a higher percentage. `staged` is the id of the rollout in
    stages that decides which machines get the version.

    PRECONDITION if the version is released to all machines already, another rollout of the program is not finished, or
    an existing one would be narrowed. INVALID.
    """
    if not 0 < percent <= 100:
        raise MachineError("the percentage must be above 0 and at most 100", kind=ErrorKind.INVALID)
    if stop_after is not None and not 0 <= stop_after <= 1_000_000:
        raise MachineError("the number of roll-backs must be 0 to 1,000,000", kind=ErrorKind.INVALID)
    existing = {entry.rollout.version: entry for entry in rollouts(sql, owner) if entry.rollout.program == program}
    before = existing.get(version)
    again = before is not None and bool(staged) and before.rollout.state is RolloutState.REVERTED
    if before is not None and not again:
        return _widen(sql, owner, before, percent, frozenset(tags), frozenset(locations), stop_after, now)
    in_force = {target.custom.version for target in repository.targets(sql, owner, program)}
    if before is not None:  # it was taken back before
        sql.run("DELETE FROM rollouts WHERE id = ?", before.rollout.id)
    _check_new(sql, owner, program, version, in_force, again=again)
    unfinished = [
        name
        for name, entry in existing.items()
        if entry.rollout.state not in (RolloutState.FINISHED, RolloutState.REVERTED) and name in in_force
    ]
    if unfinished:
        raise MachineError(
            f"the rollout of {program} {unfinished[0]} is not finished",
            kind=ErrorKind.PRECONDITION,
            remedy="finish it, or withdraw that version",
        )
    ROLLOUTS.check_count(len(existing), "the program")
    row: dict[str, Any] = {
        "id": staged or new_id(),
        "staged": int(bool(staged)),
        "organization_id": owner,
        "program": program,
        "version": version,
        "percent": float(percent),
        "tags": json.dumps(_checked_tags(tags)),
        "locations": json.dumps(_checked_locations(sql, owner, locations)),
        "stop_after": stop_after,
        "state": RolloutState.ACTIVE.value,
        "reason": "",
        "created": stored(now),
        "changed": stored(now),
        "counted": stored(now),
    }
    inserted(sql, "rollouts", row)
    sql.notify(repository.TOPIC, owner)
    return rollout(sql, owner, program, version)


def set_state(
    sql: Sql, owner: str, program: str, version: str, state: RolloutState, now: datetime, reason: str = ""
) -> None:
    """Pause, resume, stop or finish a rollout. PRECONDITION for a finished one, NOT_FOUND.

    After `resume`, only roll-backs from now on are counted.
    """
    before = rollout(sql, owner, program, version)
    if before.rollout.state is RolloutState.FINISHED and state is not RolloutState.FINISHED:
        raise MachineError(
            f"the rollout of {program} {version} is finished: all machines get this version",
            kind=ErrorKind.PRECONDITION,
            remedy="to take the version back, withdraw it: `machine cloud releases withdraw`",
        )
    counted = now if state is RolloutState.ACTIVE else before.counted
    sql.run(
        "UPDATE rollouts SET state = ?, reason = ?, changed = ?, counted = ? WHERE id = ?",
        state.value,
        reason,
        stored(now),
        stored(counted),
        before.rollout.id,
    )
    sql.notify(repository.TOPIC, owner)


def check_not_staged(entry: Rollout) -> None:
    """Raise PRECONDITION for a rollout whose state and share the rollout in stages decides."""
    if entry.staged:
        raise MachineError(
            f"{entry.program} {entry.version} is rolled out in stages",
            kind=ErrorKind.PRECONDITION,
            remedy="use the page Rollouts, or `machine cloud rollouts`",
        )


def stop_if_failing(sql: Sql, owner: str, program: str, version: str, now: datetime) -> bool:
    """Stop a rollout whose version was rolled back by more machines than it allows; return whether it was stopped."""
    row = sql.row(
        f"{_ALL} WHERE organization_id = ? AND program = ? AND version = ? AND state = ?",
        owner,
        program,
        version,
        RolloutState.ACTIVE.value,
    )
    if row is None:
        return False
    entry = _stored(row)
    failed = rolled_back(sql, owner, entry)
    if not decision.must_stop(entry.rollout, failed):
        return False
    reason = f"{len(failed)} machines rolled back, more than {entry.rollout.stop_after}"
    set_state(sql, owner, program, version, RolloutState.STOPPED, now, reason)
    return True


def rolled_back(sql: Sql, owner: str, entry: StoredRollout) -> list[str]:
    """Return the parts that rolled back from the version of a rollout since its roll-backs are counted."""
    rows = sql.rows(
        f"""
        SELECT DISTINCT agent_outcomes.part_id {_OUTCOMES} AND result = ? AND received >= ?
        ORDER BY agent_outcomes.part_id
        """,
        owner,
        entry.rollout.program,
        entry.rollout.version,
        ROLLED_BACK,
        stored(entry.counted),
    )
    return [row["part_id"] for row in rows]


def facts(sql: Sql, part: PartRecord, running: str) -> RolloutFacts:
    """Return the facts about a part that runs the version `running` of a program.

    Its tags are those that it reports about its platform, and the texts in the list `tags` of its metadata and of its
    machine's.
    """
    platform, reported = str(part.reported.get("platform", "")), part.reported.get("platform_tags") or ()
    places = frozenset(place.id for place in above(sql, part.location_id))
    tags = frozenset(map(str, reported)) | _own_tags(sql, part)
    return RolloutFacts(part.id, platform, tags, places, running, _included(sql, part))


def _included(sql: Sql, part: PartRecord) -> frozenset[str]:
    """Return the ids of the open rollouts in stages that have reached a part."""
    included = set()
    for program in PROGRAMS:
        row = sql.row(
            "SELECT id, stage FROM staged_rollouts WHERE subject = ? AND channel = '' AND organization_id = ? "
            "AND ended IS NULL",
            program,
            part.organization_id,
        )
        if row is not None:
            query = "SELECT stage FROM staged_machines WHERE rollout_id = ? AND part_id = ?"
            member = sql.row(query, row["id"], part.id)
            if member is not None and member["stage"] <= row["stage"]:
                included.add(row["id"])
    return frozenset(included)


def _own_tags(sql: Sql, part: PartRecord) -> frozenset[str]:
    rows = sql.rows(
        "SELECT metadata FROM parts WHERE id = ? UNION ALL SELECT metadata FROM machines WHERE id = ?",
        part.id,
        part.machine_id,
    )
    tags: set[str] = set()
    for row in rows:
        tags |= tags_in(json.loads(row["metadata"]))
    return frozenset(tags)


_ALL: Final = (
    "SELECT id, program, version, percent, tags, locations, stop_after, state, reason, staged, created, changed, "
    "counted FROM rollouts"
)
_OUTCOMES: Final = """
    FROM agent_outcomes JOIN parts ON parts.id = agent_outcomes.part_id JOIN machines ON machines.id = machine_id
        JOIN locations ON locations.id = location_id
    WHERE organization_id = ? AND program = ? AND version = ?
"""


def _check_new(sql: Sql, owner: str, program: str, version: str, in_force: Collection[str], *, again: bool) -> None:
    if not repository.exists(sql, owner):
        raise MachineError(
            "this organization has no release repository",
            kind=ErrorKind.PRECONDITION,
            remedy="machine cloud releases init",
        )
    if version not in in_force:
        raise missing("release", f"{program} {version}")
    all_targets = repository.targets(sql, owner, program)
    if not again and any(
        target.custom.version == version and STABLE in target.custom.channels for target in all_targets
    ):
        raise MachineError(
            f"{program} {version} is in the channel {STABLE} and released to all machines already",
            kind=ErrorKind.PRECONDITION,
            remedy=f"upload a new version to the channel {DEV}, start its rollout, then promote it",
        )


def _widen(
    sql: Sql,
    owner: str,
    before: StoredRollout,
    percent: float,
    tags: frozenset[str],
    locations: frozenset[str],
    stop_after: int | None,
    now: datetime,
) -> StoredRollout:
    old = before.rollout
    same = (tags or old.tags) == old.tags and (locations or old.locations) == old.locations
    check_not_staged(old)
    if old.state is RolloutState.FINISHED or percent < old.percent or not same:
        raise MachineError(
            f"there is a rollout of {old.program} {old.version} to {old.percent:g} % ({old.state.value}), which can "
            "only be widened",
            kind=ErrorKind.PRECONDITION,
            remedy="give a higher percentage, and the same tags and locations",
        )
    sql.run(
        "UPDATE rollouts SET percent = ?, stop_after = ?, changed = ? WHERE id = ?",
        float(percent),
        old.stop_after if stop_after is None else stop_after,
        stored(now),
        old.id,
    )
    sql.notify(repository.TOPIC, owner)
    return rollout(sql, owner, old.program, old.version)


def _checked_tags(tags: Collection[str]) -> list[str]:
    if len(tags) > MAX_SELECTED or any(not tag or len(tag) > TAG.value for tag in tags):
        raise MachineError(
            f"a rollout has at most {MAX_SELECTED} tags of 1 to {TAG.value} characters", kind=ErrorKind.INVALID
        )
    return sorted(set(tags))


def _checked_locations(sql: Sql, owner: str, locations: Collection[str]) -> list[str]:
    if len(locations) > MAX_SELECTED:
        raise MachineError(f"a rollout has at most {MAX_SELECTED} locations", kind=ErrorKind.INVALID)
    for subject in locations:
        if location(sql, subject).organization_id != owner:
            raise missing("location", subject)
    return sorted(set(locations))


def _stored(row: Mapping[str, Any]) -> StoredRollout:
    entry = Rollout(
        id=row["id"],
        program=row["program"],
        version=row["version"],
        percent=row["percent"],
        tags=frozenset(json.loads(row["tags"])),
        locations=frozenset(json.loads(row["locations"])),
        stop_after=row["stop_after"],
        state=RolloutState(row["state"]),
        reason=row["reason"],
        staged=bool(row["staged"]),
    )
    return StoredRollout(entry, moment_of(row["created"]), moment_of(row["changed"]), moment_of(row["counted"]))
