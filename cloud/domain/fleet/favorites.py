"""Machines that callers have marked as favorites."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cloud.store.sql import Sql
from cloud.values.author import Author
from cloud.values.times import moment_of, stored


@dataclass(frozen=True, slots=True)
class Favorite:
    """A favorite machine, and when it was marked."""

    machine_id: str
    created: datetime


def mark(sql: Sql, author: Author, machine: str, now: datetime) -> None:
    """Mark a machine; a machine that is marked already keeps its time."""
    sql.run(
        "INSERT INTO favorites (author_type, author, machine_id, created) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        author.type,
        author.name,
        machine,
        stored(now),
    )


def unmark(sql: Sql, author: Author, machine: str) -> None:
    """Remove the mark, if there is one."""
    sql.run(
        "DELETE FROM favorites WHERE author_type = ? AND author = ? AND machine_id = ?",
        author.type,
        author.name,
        machine,
    )


def favorites(sql: Sql, author: Author) -> list[Favorite]:
    """Return the favorites of a caller, newest first."""
    rows = sql.rows(
        "SELECT machine_id, created FROM favorites WHERE author_type = ? AND author = ? "
        "ORDER BY created DESC, machine_id",
        author.type,
        author.name,
    )
    return [Favorite(row["machine_id"], moment_of(row["created"])) for row in rows]
