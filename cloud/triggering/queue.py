"""What happened and is still to be evaluated: in order within each part, as the database keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from cloud.store.sql import Sql, inserted
from cloud.times import moment_of, stored
from triggers.events import Happening, Ingested, Logged, Presence

TOPIC: Final = "triggers"
"""Told with the id of a part when something was queued for it."""


KINDS: Final[Mapping[str, type[Happening]]] = {"ingestion": Ingested, "presence": Presence, "logs": Logged}


@dataclass(frozen=True, slots=True)
class Queued:
    """One event that waits."""

    number: int
    part: str
    happened: datetime
    event: Happening


def enqueue(sql: Sql, part: str, event: Happening, now: datetime) -> None:
    """Keep an event until it has been evaluated."""
    kind = next(name for name, cls in KINDS.items() if isinstance(event, cls))
    sql.run("INSERT INTO trigger_queues (part_id) VALUES (?) ON CONFLICT (part_id) DO NOTHING", part)
    inserted(
        sql,
        "trigger_events",
        {"part_id": part, "happened": stored(now), "kind": kind, "event": msgspec.json.encode(event).decode()},
    )
    sql.notify(TOPIC, part)


def take(sql: Sql, limit: int) -> list[Queued]:
    """The oldest events of one part, at most `limit`; they are its alone until the transaction ends. Empty: none waits.

    Replicas take different parts, so that events of one part are never evaluated side by side. Whoever takes them ends
    with `done`: by what that deletes PostgreSQL sees two who took the same. The row that is held is not changed, as
    every upload looks at it.
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
    """Forget events that were evaluated."""
    sql.many("DELETE FROM trigger_events WHERE number = ?", [(one.number,) for one in taken])


def waiting(sql: Sql) -> int:
    """How many events are not evaluated yet."""
    row = sql.row("SELECT COUNT(*) AS count FROM trigger_events")
    return row["count"] if row is not None else 0


def forget(sql: Sql, now: datetime) -> int:
    """Remove what is kept for parts that were deleted; how many rows that were."""
    gone = 0
    for table in ("trigger_events", "trigger_queues", "trigger_clocks", "trigger_stops", "trigger_presence"):
        gone += sql.run(f"DELETE FROM {table} WHERE part_id NOT IN (SELECT id FROM parts)")
    return gone
