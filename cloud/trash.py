"""Files that no row names any more: they stay for DELAY, so that a backup of the database can be put back.

The bytes stay where they are; the table `trash` says since when nobody names them. A row enters it in the transaction
that deletes what named the file, or when `cloud.sweep` meets a file that no row names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from cloud.store.sql import Sql
from cloud.times import stored

DELAY: Final = timedelta(days=7)  # that a file without a row stays

_PUT: Final = "INSERT INTO trash (blob, since, deleted) VALUES (?, ?, ?) ON CONFLICT (blob) DO NOTHING"


def put(sql: Sql, keys: Iterable[str], now: datetime) -> None:
    """Note files whose rows this transaction deletes."""
    sql.many(_PUT, [(key, stored(now), 1) for key in keys])


def noticed(sql: Sql, keys: Iterable[str], now: datetime) -> None:
    """Note files that are in the store although no row names them; those that are in the trash stay as they are."""
    sql.many(_PUT, [(key, stored(now), 0) for key in keys])


def between(sql: Sql, first: str, last: str) -> dict[str, tuple[int, bool]]:
    """Files in the trash with keys from `first` on and before `last`: since when, and whether a row was deleted."""
    rows = sql.rows("SELECT blob, since, deleted FROM trash WHERE blob >= ? AND blob < ?", first, last)
    return {row["blob"]: (row["since"], bool(row["deleted"])) for row in rows}


def before(sql: Sql, moment: datetime) -> list[str]:
    """Files that were put into the trash before a moment."""
    return [row["blob"] for row in sql.rows("SELECT blob FROM trash WHERE since < ?", stored(moment))]


def forget(sql: Sql, keys: Collection[str]) -> None:
    """Take files out of the trash: they are named again, or gone."""
    if keys:
        sql.many("DELETE FROM trash WHERE blob = ?", [(key,) for key in keys])


def release(sql: Sql) -> int:
    """Treat all files without a row as deleted on purpose, however many they are: how many there were."""
    return sql.run("UPDATE trash SET deleted = 1 WHERE deleted = 0")
