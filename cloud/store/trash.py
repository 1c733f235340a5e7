"""Trash for files without rows. They are kept for DELAY, so that a backup of the database can be restored.

The content stays in place; the table `trash` contains the time since when no row refers to it. An entry is added in the
transaction that deletes the row of a file, or when `cloud.domain.upkeep.sweep` finds a file without a row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from cloud.store.sql import Sql
from cloud.values.times import stored

DELAY: Final = timedelta(days=7)  # how long a file without a row is kept

_PUT: Final = "INSERT INTO trash (blob, since, deleted) VALUES (?, ?, ?) ON CONFLICT (blob) DO NOTHING"


def put(sql: Sql, keys: Iterable[str], now: datetime) -> None:
    """Add files whose rows are deleted in this transaction."""
    sql.many(_PUT, [(key, stored(now), 1) for key in keys])


def noticed(sql: Sql, keys: Iterable[str], now: datetime) -> None:
    """Add files in the store that have no row; existing entries stay as they are."""
    sql.many(_PUT, [(key, stored(now), 0) for key in keys])


def between(sql: Sql, first: str, last: str) -> dict[str, tuple[int, bool]]:
    """Return time, and whether a row was deleted, of files in the trash with keys from `first` on and before `last`."""
    rows = sql.rows("SELECT blob, since, deleted FROM trash WHERE blob >= ? AND blob < ?", first, last)
    return {row["blob"]: (row["since"], bool(row["deleted"])) for row in rows}


def before(sql: Sql, moment: datetime) -> list[str]:
    """Return files that were added to the trash before a moment."""
    return [row["blob"] for row in sql.rows("SELECT blob FROM trash WHERE since < ?", stored(moment))]


def forget(sql: Sql, keys: Collection[str]) -> None:
    """Remove files from the trash, because they have rows again or were deleted."""
    if keys:
        sql.many("DELETE FROM trash WHERE blob = ?", [(key,) for key in keys])


def release(sql: Sql) -> int:
    """Treat all files without a row as deleted on purpose, however many there are; return their number."""
    return sql.run("UPDATE trash SET deleted = 1 WHERE deleted = 0")
