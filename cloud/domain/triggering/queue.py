"""Queue of events that wait for evaluation, in order within each part, in the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from cloud.store.sql import Sql, inserted
from cloud.values.times import moment_of, stored
from triggers import Ingested, Logged, Presence, TrainingEnded, TriggerEvent

TOPIC: Final = "triggers"
"""Event topic; the subject is the id of a part for which an event was queued."""


@dataclass(frozen=True, slots=True)
class CheckDue:
    """Presence, health, place or tags of a part may have changed; all are in the database. For alerts."""


@dataclass(frozen=True, slots=True)
class UpdateEnded:
    """An update of a program of a part ended. `result` is `updated` or names the failure. For alerts."""

    program: str
    version: str
    result: str
    reason: str


QueuedEvent: TypeAlias = TriggerEvent | TrainingEnded | CheckDue | UpdateEnded

KINDS: Final[Mapping[str, type[QueuedEvent]]] = {
    "ingestion": Ingested,
    "presence": Presence,
    "logs": Logged,
    "training": TrainingEnded,
    "checked": CheckDue,
    "update": UpdateEnded,
}


@dataclass(frozen=True, slots=True)
class Queued:
    """One waiting event of a part, or of an organization for TrainingEnded."""

    number: int
    part: str
    happened: datetime
    event: QueuedEvent


def enqueue(sql: Sql, part: str, event: QueuedEvent, now: datetime) -> None:
    """Store an event until it has been evaluated. For TrainingEnded, `part` is the id of the organization."""
    kind = next(name for name, cls in KINDS.items() if isinstance(event, cls))
    sql.run("INSERT INTO trigger_queues (part_id) VALUES (?) ON CONFLICT (part_id) DO NOTHING", part)
    inserted(
        sql,
        "trigger_events",
        {"part_id": part, "happened": stored(now), "kind": kind, "event": msgspec.json.encode(event).decode()},
    )
    sql.notify(TOPIC, part)


def enqueue_checks(sql: Sql, owner: str, now: datetime) -> None:
    """Queue CheckDue for each part of an organization for which none is waiting."""
    parts = """
        FROM locations JOIN machines ON machines.location_id = locations.id JOIN parts ON parts.machine_id = machines.id
        WHERE locations.organization_id = ?
    """
    _enqueue_checks(sql, parts, owner, now)


def enqueue_checks_of_machine(sql: Sql, machine: str, now: datetime) -> None:
    """Queue CheckDue for each part of a machine for which none is waiting."""
    _enqueue_checks(sql, "FROM parts WHERE machine_id = ?", machine, now)


def _enqueue_checks(sql: Sql, parts: str, subject: str, now: datetime) -> None:
    sql.run(f"INSERT INTO trigger_queues (part_id) SELECT parts.id {parts} ON CONFLICT (part_id) DO NOTHING", subject)
    added = sql.run(
        f"""
        INSERT INTO trigger_events (part_id, happened, kind, event) SELECT parts.id, ?, 'checked', ? {parts}
        AND NOT EXISTS (SELECT 1 FROM trigger_events WHERE part_id = parts.id AND kind = 'checked')
        """,
        stored(now),
        msgspec.json.encode(CheckDue()).decode(),
        subject,
    )
    if added:
        sql.notify(TOPIC, subject)


def take(sql: Sql, limit: int) -> list[Queued]:
    """Take up to `limit` of the oldest events of one part, locked until the transaction ends; may be empty.

    Replicas take different parts, so events of one part are never evaluated concurrently. The caller must call `done`:
    from its deletions PostgreSQL detects that two transactions took the same events. The locked row is not changed,
    because every upload reads it.
    """
    busy: list[str] = []
    while True:
        others = f"WHERE part_id NOT IN ({', '.join('?' * len(busy))})" if busy else ""
        head = sql.row(f"SELECT part_id FROM trigger_events {others} ORDER BY number LIMIT 1", *busy)
        if head is None:
            return []
        part = head["part_id"]
        if sql.row(f"SELECT part_id FROM trigger_queues WHERE part_id = ?{sql.skip_locked}", part) is not None:
            break
        busy.append(part)
    rows = sql.rows("SELECT * FROM trigger_events WHERE part_id = ? ORDER BY number LIMIT ?", part, limit)
    return [
        Queued(
            row["number"],
            row["part_id"],
            moment_of(row["happened"]),
            msgspec.json.decode(row["event"], type=KINDS[row["kind"]]),
        )
        for row in rows
    ]


def done(sql: Sql, taken: Iterable[Queued]) -> None:
    """Delete events that were evaluated."""
    sql.many("DELETE FROM trigger_events WHERE number = ?", [(queued.number,) for queued in taken])


def waiting(sql: Sql) -> int:
    """Return the number of events that are not evaluated yet."""
    row = sql.row("SELECT COUNT(*) AS count FROM trigger_events")
    return row["count"] if row is not None else 0


def forget(sql: Sql, now: datetime) -> int:
    """Delete rows of deleted parts and organizations; return their number."""
    deleted = 0
    for table in ("trigger_events", "trigger_queues", "trigger_clocks", "trigger_stops", "trigger_presence"):
        deleted += sql.run(
            f"DELETE FROM {table} WHERE part_id NOT IN (SELECT id FROM parts) "
            "AND part_id NOT IN (SELECT id FROM organizations)"
        )
    return deleted
