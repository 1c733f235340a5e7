"""Imports of the cloud's own programs into the releases of an organization: requests, progress and results.

An import is a row. The process that works on it holds a lease, so that another one goes on after a crash. All its steps
can be repeated: files are stored by their hash, and targets are signed once, at the end.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cloud.store.sql import Sql
from cloud.values.times import moment_of, stored

TOPIC: Final = "release import"
"""Topic of events about imports; the subject is the organization."""

LEASE: Final = timedelta(seconds=60)
"""Time without progress after which another process takes over."""

WAITING: Final = "waiting"
WORKING: Final = "working"
DONE: Final = "done"
FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class Note:
    """Why there is no release for a platform, or for all of them, and what can be done."""

    platform: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ImportState:
    """An import. `number` grows with each change; `done` and `total` are bytes, 0 for a step of unknown length."""

    state: str
    step: str
    done: int
    total: int
    notes: tuple[Note, ...]
    number: int
    changed: datetime


def request(sql: Sql, owner: str, now: datetime) -> None:
    """Request an import; nothing happens if one is waiting or in progress."""
    sql.run(
        "INSERT INTO release_imports (organization_id, state, step, done, total, notes, number, lease, changed) "
        "VALUES (?, ?, '', 0, 0, '[]', 1, 0, ?) "
        "ON CONFLICT (organization_id) DO UPDATE SET state = excluded.state, step = '', done = 0, total = 0, "
        "notes = '[]', number = release_imports.number + 1, lease = 0, changed = excluded.changed "
        "WHERE release_imports.state IN ('done', 'failed')",
        owner,
        WAITING,
        stored(now),
    )
    sql.notify(TOPIC, owner)


def state_of(sql: Sql, owner: str) -> ImportState | None:
    """Return the newest import of an organization; None if there was none."""
    row = sql.row(
        "SELECT state, step, done, total, notes, number, changed FROM release_imports WHERE organization_id = ?", owner
    )
    if row is None:
        return None
    notes = tuple(Note(**entry) for entry in json.loads(row["notes"]))
    return ImportState(
        row["state"], row["step"], row["done"], row["total"], notes, row["number"], moment_of(row["changed"])
    )


def claim(sql: Sql, now: datetime) -> str:
    """Begin or take over the import that has waited longest, and return its organization; empty if there is none."""
    row = sql.row(
        "SELECT organization_id, lease FROM release_imports WHERE state IN ('waiting', 'working') AND lease <= ? "
        "ORDER BY lease LIMIT 1",
        stored(now),
    )
    if row is None:
        return ""
    claimed = sql.run(
        "UPDATE release_imports SET state = ?, lease = ?, number = number + 1 "
        "WHERE organization_id = ? AND lease = ? AND state IN ('waiting', 'working')",
        WORKING,
        stored(now + LEASE),
        row["organization_id"],
        row["lease"],
    )
    return str(row["organization_id"]) if claimed else ""


def next_claim(sql: Sql) -> datetime | None:
    """Return when the next import can be claimed; None if there is none."""
    row = sql.row(
        "SELECT lease FROM release_imports WHERE state IN ('waiting', 'working') AND lease >= 0 ORDER BY lease LIMIT 1"
    )
    return None if row is None else moment_of(row["lease"])


def progress(sql: Sql, owner: str, now: datetime, step: str, done: int = 0, total: int = 0) -> None:
    """Store the progress of an import, and hold its lease."""
    sql.run(
        "UPDATE release_imports SET step = ?, done = ?, total = ?, number = number + 1, lease = ?, changed = ? "
        "WHERE organization_id = ? AND state = ?",
        step,
        done,
        total,
        stored(now + LEASE),
        stored(now),
        owner,
        WORKING,
    )
    sql.notify(TOPIC, owner)


def finish(sql: Sql, owner: str, now: datetime, state: str, step: str, notes: Sequence[Note]) -> None:
    """End an import with its result (DONE or FAILED)."""
    texts = [{"platform": note.platform, "reason": note.reason, "remedy": note.remedy} for note in notes]
    sql.run(
        "UPDATE release_imports SET state = ?, step = ?, notes = ?, done = 0, total = 0, number = number + 1, "
        "changed = ? WHERE organization_id = ?",
        state,
        step,
        json.dumps(texts, ensure_ascii=False),
        stored(now),
        owner,
    )
    sql.notify(TOPIC, owner)
