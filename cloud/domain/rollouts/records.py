"""Rollouts in stages in the database: rollouts, their machines, counts and events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from cloud.domain.organizations.tenants import missing
from cloud.domain.rollouts.life import ENDED, OPEN, MachineState, RolloutTiming, StagedRolloutState
from cloud.domain.rollouts.plan import Plan, RolloutKind
from cloud.store.sql import Conflict, Row, Sql, Value, inserted
from cloud.values.author import Author
from cloud.values.limits import KEPT_ROLLOUTS, OPEN_ROLLOUTS, ROLLOUT_MACHINES
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError

TOPIC: Final = "rollouts"
"""Topic of events about rollouts; the subject is their organization."""
EVENTS: Final = 200
"""Events that are kept of a rollout, the newest."""
PATIENCE: Final = {RolloutKind.FRAGMENT: timedelta(minutes=10), RolloutKind.PROGRAM: timedelta(hours=1)}
"""How long a machine may be online without taking the change."""

_ROLLOUT: Final = (
    "SELECT id, organization_id, kind, subject, channel, called, revision_from, revision_to, plan, state, stage, "
    "reason, failures, total, created, changed, ended FROM staged_rollouts"
)
_MACHINE: Final = (
    "SELECT part_id, machine_id, name, stage, state, taken, reason, changed FROM staged_machines WHERE rollout_id = ?"
)


@dataclass(frozen=True, slots=True)
class StagedRollout:
    """A rollout. `stage` is the last stage that is included; `failures` count since it was started or resumed."""

    id: str
    organization_id: str
    kind: RolloutKind
    subject: str
    channel: str
    called: str
    revision_from: str
    revision_to: str
    plan: Plan
    state: StagedRolloutState
    stage: int
    reason: str
    failures: int
    total: int
    created: datetime
    changed: datetime
    ended: datetime | None

    @property
    def timing(self) -> RolloutTiming:
        """How its machines are watched."""
        soak = timedelta(seconds=self.plan.soak_seconds)
        return RolloutTiming(soak, PATIENCE[self.kind], late_fails=self.kind is RolloutKind.FRAGMENT)


@dataclass(frozen=True, slots=True)
class RolloutMember:
    """A part that a rollout is to reach."""

    part: str
    machine: str
    name: str
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StagedMachine:
    """A part of a rollout."""

    part: str
    machine: str
    name: str
    stage: int
    state: MachineState
    taken: datetime | None
    reason: str
    changed: datetime


@dataclass(frozen=True, slots=True)
class RolloutEvent:
    """Something that happened to a rollout; `author` is None if it happened by itself."""

    number: int
    happened: datetime
    author: Author | None
    kind: str
    detail: str


def rollout(sql: Sql, owner: str, subject: str) -> StagedRollout:
    """Return one rollout of an organization; NOT_FOUND."""
    row = sql.row(f"{_ROLLOUT} WHERE id = ? AND organization_id = ?", subject, owner)
    if row is None:
        raise missing("rollout", subject)
    return _rollout(row)


def by_id(sql: Sql, subject: str) -> StagedRollout:
    """Return one rollout of any organization, for programs; NOT_FOUND."""
    row = sql.row(f"{_ROLLOUT} WHERE id = ?", subject)
    if row is None:
        raise missing("rollout", subject)
    return _rollout(row)


def rollouts(sql: Sql, owner: str) -> list[StagedRollout]:
    """Return the rollouts of an organization, newest first; see the limits `open_rollouts` and `kept_rollouts`."""
    return [_rollout(row) for row in sql.rows(f"{_ROLLOUT} WHERE organization_id = ? ORDER BY created DESC, id", owner)]


def create(sql: Sql, entry: StagedRollout, stages: Mapping[str, int], members: Iterable[RolloutMember]) -> None:
    """Store a new rollout with its machines, all in later stages. EXISTS, EXHAUSTED.

    The oldest rollouts that have ended are deleted if there are too many.
    """
    before = rollouts(sql, entry.organization_id)
    OPEN_ROLLOUTS.check_count(sum(each.state not in ENDED for each in before), "the organization")
    ROLLOUT_MACHINES.check(len(stages), "the rollout")
    for old in [each for each in before if each.state in ENDED][KEPT_ROLLOUTS.value - 1 :]:
        _delete(sql, old.id)
    row: dict[str, Value] = {
        "id": entry.id,
        "organization_id": entry.organization_id,
        "kind": entry.kind.value,
        "subject": entry.subject,
        "channel": entry.channel,
        "called": entry.called,
        "revision_from": entry.revision_from,
        "revision_to": entry.revision_to,
        "plan": msgspec.json.encode(entry.plan).decode(),
        "state": entry.state.value,
        "stage": entry.stage,
        "reason": "",
        "failures": 0,
        "total": len(stages),
        "created": stored(entry.created),
        "changed": stored(entry.changed),
    }
    try:
        inserted(sql, "staged_rollouts", row)
    except Conflict:
        raise MachineError(
            f"there is an open rollout of {entry.called}",
            kind=ErrorKind.EXISTS,
            remedy="finish it or go back before you start another one",
        ) from None
    moment = stored(entry.created)
    sql.many(
        "INSERT INTO staged_machines (rollout_id, part_id, machine_id, name, stage, state, up, problems, reason, "
        "changed, watched) VALUES (?, ?, ?, ?, ?, ?, 0, 0, '', ?, 0)",
        [
            (entry.id, each.part, each.machine, each.name, stages[each.part], MachineState.PENDING.value, moment)
            for each in members
            if each.part in stages
        ],
    )
    for number in range(len(entry.plan.stages)):
        count = sum(stage == number for stage in stages.values())
        add(sql, entry.id, number, MachineState.PENDING, count)


def _delete(sql: Sql, subject: str) -> None:
    for table in ("staged_machines", "staged_counts", "staged_events"):
        sql.run(f"DELETE FROM {table} WHERE rollout_id = ?", subject)
    sql.run("DELETE FROM staged_rollouts WHERE id = ?", subject)


# ---- counts


def add(sql: Sql, subject: str, stage: int, state: MachineState, count: int) -> None:
    """Add to the number of machines of a stage in a state."""
    if count:
        sql.run(
            "INSERT INTO staged_counts (rollout_id, stage, state, count) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (rollout_id, stage, state) DO UPDATE SET count = staged_counts.count + excluded.count",
            subject,
            stage,
            state.value,
            count,
        )


def counts(sql: Sql, subject: str) -> list[dict[MachineState, int]]:
    """Return the numbers of machines in each state, by stage, as far as stages have machines."""
    result: list[dict[MachineState, int]] = []
    for row in sql.rows(
        "SELECT stage, state, count FROM staged_counts WHERE rollout_id = ? ORDER BY stage, state", subject
    ):
        while len(result) <= row["stage"]:
            result.append({})
        if row["count"]:
            result[row["stage"]][MachineState(row["state"])] = row["count"]
    return result


# ---- machines


def machines(
    sql: Sql, subject: str, state: str = "", after: tuple[str, str] = ("", ""), limit: int = 100
) -> list[StagedMachine]:
    """Return machines by name, after a name and part; with `state`, those in it."""
    rows = sql.rows(
        f"{_MACHINE} {'AND state = ?' if state else ''} AND (name, part_id) > (?, ?) ORDER BY name, part_id LIMIT ?",
        subject,
        *([state] if state else []),
        *after,
        limit,
    )
    return [_machine(row) for row in rows]


def include(sql: Sql, entry: StagedRollout, stage: int, now: datetime) -> None:
    """Let the machines of a stage have the change, and look at each of them soon."""
    moment = stored(now)
    included = sql.run(
        """
        UPDATE staged_machines SET state = ?, offered = ?, changed = ?, due = ?, watched = 1,
            up = COALESCE((SELECT CASE WHEN parts.seen IS NULL OR parts.gone = 1 THEN 0
                    WHEN trigger_presence.online IS NOT NULL THEN trigger_presence.online
                    WHEN fleet_rows.state IN ('online', 'degraded') THEN 1 ELSE 0 END
                FROM parts LEFT JOIN trigger_presence ON trigger_presence.part_id = parts.id
                    LEFT JOIN fleet_rows ON fleet_rows.machine_id = parts.machine_id
                WHERE parts.id = staged_machines.part_id), 0),
            problems = COALESCE((SELECT -calm FROM fleet_rows
                WHERE fleet_rows.machine_id = staged_machines.machine_id), 0)
        WHERE rollout_id = ? AND stage = ? AND state = ?
        """,
        MachineState.WAITING.value,
        moment,
        moment,
        moment,
        entry.id,
        stage,
        MachineState.PENDING.value,
    )
    add(sql, entry.id, stage, MachineState.PENDING, -included)
    add(sql, entry.id, stage, MachineState.WAITING, included)


def notify_stage(sql: Sql, entry: StagedRollout, stage: int) -> None:
    """Notify the parts of a stage that their configuration has changed."""
    query = "SELECT part_id FROM staged_machines WHERE rollout_id = ? AND stage = ? ORDER BY part_id"
    for row in sql.rows(query, entry.id, stage):
        sql.notify("part", row["part_id"])


def parts_in(sql: Sql, subject: str, states: Sequence[MachineState]) -> list[str]:
    """Return the parts of a rollout in some states."""
    marks = ", ".join("?" * len(states))
    rows = sql.rows(
        f"SELECT part_id FROM staged_machines WHERE rollout_id = ? AND state IN ({marks})",
        subject,
        *(state.value for state in states),
    )
    return [row["part_id"] for row in rows]


def last_taken(sql: Sql, subject: str) -> datetime | None:
    """Return when the last of the machines that are watched took the change; None if none is watched."""
    row = sql.row(
        "SELECT taken FROM staged_machines WHERE rollout_id = ? AND state = 'updated' ORDER BY taken DESC LIMIT 1",
        subject,
    )
    return None if row is None or row["taken"] is None else moment_of(row["taken"])


def watch_again(sql: Sql, subject: str, states: Sequence[MachineState], now: datetime, *, offered: bool) -> None:
    """Look soon at the machines in some states; with `offered`, they can take the change from now on."""
    marks = ", ".join("?" * len(states))
    sql.run(
        f"UPDATE staged_machines SET due = ?, worse = NULL{', offered = ?' if offered else ''} "
        f"WHERE rollout_id = ? AND state IN ({marks})",
        *([stored(now)] * (2 if offered else 1)),
        subject,
        *(state.value for state in states),
    )


def end_watch(sql: Sql, subject: str) -> None:
    """Stop looking at the machines of a rollout."""
    for state in OPEN:
        sql.run(
            "UPDATE staged_machines SET due = NULL, watched = 0 WHERE rollout_id = ? AND state = ?",
            subject,
            state.value,
        )


def returning(sql: Sql, entry: StagedRollout, now: datetime) -> list[str]:
    """Let all machines that were reached return; return their parts."""
    parts = parts_in(sql, entry.id, (*OPEN, MachineState.HEALTHY, MachineState.FAILED))
    for stage, by_state in enumerate(counts(sql, entry.id)):
        for state, count in by_state.items():
            if state in (*OPEN, MachineState.HEALTHY, MachineState.FAILED):
                add(sql, entry.id, stage, state, -count)
                add(sql, entry.id, stage, MachineState.RETURNING, count)
    for state in (*OPEN, MachineState.HEALTHY, MachineState.FAILED):
        sql.run(
            "UPDATE staged_machines SET state = ?, changed = ?, due = ?, watched = 1 "
            "WHERE rollout_id = ? AND state = ?",
            MachineState.RETURNING.value,
            stored(now),
            stored(now),
            entry.id,
            state.value,
        )
    return parts


# ---- events


def note(sql: Sql, subject: str, author: Author | None, kind: str, detail: str, now: datetime) -> None:
    """Record what happened to a rollout, and by whom."""
    row = sql.row("SELECT MAX(number) AS number FROM staged_events WHERE rollout_id = ?", subject)
    number = 1 + (row["number"] or 0 if row is not None else 0)
    inserted(
        sql,
        "staged_events",
        {
            "rollout_id": subject,
            "number": number,
            "happened": stored(now),
            "author_type": author.type if author is not None else "",
            "author": author.name if author is not None else "",
            "kind": kind,
            "detail": detail[:500],
        },
    )
    sql.run("DELETE FROM staged_events WHERE rollout_id = ? AND number <= ?", subject, number - EVENTS)


def events(sql: Sql, subject: str) -> list[RolloutEvent]:
    """Return what happened to a rollout, newest first."""
    rows = sql.rows(
        "SELECT number, happened, author_type, author, kind, detail FROM staged_events WHERE rollout_id = ? "
        "ORDER BY number DESC",
        subject,
    )
    return [
        RolloutEvent(
            row["number"],
            moment_of(row["happened"]),
            _author(row),
            row["kind"],
            row["detail"],
        )
        for row in rows
    ]


def authors(sql: Sql, subject: str) -> tuple[Author | None, Author | None]:
    """Return who started a rollout, and who did what happened to it last; None if it happened by itself."""
    query = "SELECT author_type, author FROM staged_events WHERE rollout_id = ? ORDER BY number"
    rows = (sql.row(f"{query} LIMIT 1", subject), sql.row(f"{query} DESC LIMIT 1", subject))
    first, last = (None if row is None else _author(row) for row in rows)
    return first, last


def _author(row: Row) -> Author | None:
    return Author(row["author_type"], row["author"]) if row["author_type"] else None


def _rollout(row: Row) -> StagedRollout:
    return StagedRollout(
        row["id"],
        row["organization_id"],
        RolloutKind(row["kind"]),
        row["subject"],
        row["channel"],
        row["called"],
        row["revision_from"],
        row["revision_to"],
        msgspec.json.decode(row["plan"], type=Plan),
        StagedRolloutState(row["state"]),
        row["stage"],
        row["reason"],
        row["failures"],
        row["total"],
        moment_of(row["created"]),
        moment_of(row["changed"]),
        None if row["ended"] is None else moment_of(row["ended"]),
    )


def _machine(row: Row) -> StagedMachine:
    return StagedMachine(
        row["part_id"],
        row["machine_id"],
        row["name"],
        row["stage"],
        MachineState(row["state"]),
        None if row["taken"] is None else moment_of(row["taken"]),
        row["reason"],
        moment_of(row["changed"]),
    )
