"""Retention periods of captured data."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from cloud.domain.data import files
from cloud.domain.data.segments import listed
from cloud.store.sql import Sql
from cloud.values.times import stored
from schema import ErrorKind, MachineError

MAX_DAYS: Final = 36_500
AT_ONCE: Final = 5000  # rows of one organization that one transaction deletes; the next one continues
SEGMENTS: Final = 100  # segments of one organization that one transaction deletes


def days(sql: Sql, owner: str) -> int:
    """Return the retention period of an organization in days; 0 means forever."""
    row = sql.row("SELECT days FROM data_retention WHERE organization_id = ?", owner)
    return int(row["days"]) if row is not None else 0


def set_days(sql: Sql, owner: str, number: int) -> None:
    """Set the retention period in days after arrival; 0 means forever. INVALID outside 0 to MAX_DAYS."""
    if not 0 <= number <= MAX_DAYS:
        raise MachineError(
            f"data cannot be kept for {number} days", kind=ErrorKind.INVALID, remedy=f"use 0 (forever) to {MAX_DAYS}"
        )
    sql.run(
        """
        INSERT INTO data_retention (organization_id, days) VALUES (?, ?)
        ON CONFLICT (organization_id) DO UPDATE SET days = excluded.days
        """,
        owner,
        number,
    )


def expire(sql: Sql, now: datetime) -> int:
    """Delete data whose retention period is over, within the limits; return the number of readings and files.

    A segment is deleted when all its readings are too old.
    """
    return sum(
        _expire(sql, row["organization_id"], stored(now - timedelta(days=row["days"])), now)
        for row in sql.rows("SELECT organization_id, days FROM data_retention WHERE days > 0")
    )


def forget(sql: Sql, owner: str, now: datetime) -> None:
    """Delete all data and datasets of an organization."""
    sources = "SELECT number FROM data_sources WHERE organization_id = ?"
    sql.run(f"DELETE FROM readings WHERE source IN ({sources})", owner)
    listed.forget(sql, owner, now)
    files.delete(sql, [row["id"] for row in sql.rows(f"SELECT id FROM files WHERE source IN ({sources})", owner)], now)
    sql.run(f"DELETE FROM data_source_tags WHERE source IN ({sources})", owner)
    for table in ("data_sources", "datasets", "data_retention"):
        sql.run(f"DELETE FROM {table} WHERE organization_id = ?", owner)


def _expire(sql: Sql, owner: str, before: int, now: datetime) -> int:
    # SQLite keeps the order of tables in a CROSS JOIN, so it searches the index (source, synced) once for each source.
    old = """
        FROM data_sources CROSS JOIN {0} WHERE data_sources.organization_id = ? AND {0}.source = data_sources.number
        AND {0}.synced < ? LIMIT ?
    """
    readings = sql.run(
        f"DELETE FROM readings WHERE number IN (SELECT readings.number {old.format('readings')})",
        owner,
        before,
        AT_ONCE,
    )
    rows = sql.rows(f"SELECT files.id AS id {old.format('files')}", owner, before, AT_ONCE)
    readings += listed.expire(sql, owner, before, now, SEGMENTS)
    return readings + files.delete(sql, [row["id"] for row in rows], now)
