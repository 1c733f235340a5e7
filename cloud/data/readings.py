"""Tabular readings: what methods returned, as JSON, with the times of asking and of the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

import msgspec

from cloud.data.files import Total
from cloud.data.filters import Scope, Wanted, conditions, where
from cloud.data.pages import MAX_PAGE, Page, rows_of
from cloud.data.sources import COLUMNS, Source, number_of, read, tags_of
from cloud.names import new_id
from cloud.store.sql import Sql
from cloud.times import moment_of, stored

REMEMBERED: Final = timedelta(days=30)  # how long an upload that is repeated is known again
AT_ONCE: Final = 5000  # uploads that one transaction forgets


@dataclass(frozen=True)
class NewReading:
    """A reading to be kept; `data` as the machine sent it."""

    requested: datetime
    received: datetime
    data: Mapping[str, Any]

    @cached_property
    def text(self) -> str:
        """`data` as it is kept: JSON, the same for the same data."""
        text = _encode(self.data).decode()
        # What is not finite has no place in JSON: Python's own says it all the same, and reads it again.
        return json.dumps(self.data, ensure_ascii=False, sort_keys=True) if "null" in text else text


_encode: Final = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class ReadingRecord:
    """A kept reading. `number` rises in the order of arrival; `source_number` is equal for the same source and tags;
    `text` is its data as JSON.
    """

    number: int
    source_number: int
    source: Source
    tags: tuple[str, ...]
    requested: datetime
    received: datetime
    synced: datetime
    text: str

    @property
    def data(self) -> Any:
        """`text` parsed, each time; not in a transaction, for which others wait."""
        return json.loads(self.text)


def keep(
    sql: Sql, key: str | None, source: Source, tags: Sequence[str], readings: Sequence[NewReading], now: datetime
) -> tuple[str, bool]:
    """Keep the readings of an upload: its id, and whether they are new. With `key`, an upload that was kept under the
    same key adds nothing."""
    subject, synced = new_id(), stored(now)
    if key is not None:
        # Looking first and writing then, uploads of different machines would be in each other's way (PostgreSQL).
        statement = "INSERT INTO data_uploads (key, file_id, synced) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING"
        if not sql.run(statement, key, subject, synced):
            row = sql.row("SELECT file_id FROM data_uploads WHERE key = ?", key)
            assert row is not None
            return row["file_id"], False
    number = number_of(sql, source, tags)
    sql.many(
        "INSERT INTO readings (source, requested, received, synced, data) VALUES (?, ?, ?, ?, ?)",
        [(number, stored(one.requested), stored(one.received), synced, one.text) for one in readings],
    )
    sql.notify("data", source.part_id)
    return subject, True


_READING: Final = f"""
    SELECT readings.number AS number, source, requested, received, synced, data, {COLUMNS}
    FROM readings JOIN data_sources ON data_sources.number = readings.source
"""


def query(sql: Sql, wanted: Wanted, scope: Scope, page: Page) -> list[ReadingRecord]:
    """A page of readings in order of the time when they were captured."""
    return _read(sql, rows_of(sql, "readings", _READING, conditions("readings", wanted, scope), page))


def arrived(sql: Sql, wanted: Wanted, scope: Scope, after: int, limit: int = MAX_PAGE) -> list[ReadingRecord]:
    """Readings in the order of arrival, those that came after the one with the number `after`."""
    condition, values = where("readings", wanted, scope)
    # SQLite takes the tables of a CROSS JOIN in this order: by number, until there are enough; without it each page
    # would be sorted out of all readings. For other databases it is a JOIN like any other.
    select = _READING.replace("JOIN data_sources ON data_sources.number = readings.source", "CROSS JOIN data_sources")
    rows = sql.rows(
        f"""
        {select} WHERE data_sources.number = readings.source AND {condition} AND readings.number > ?
        ORDER BY readings.number LIMIT ?
        """,
        *values,
        after,
        limit,
    )
    return _read(sql, rows)


def total(sql: Sql, wanted: Wanted, scope: Scope) -> Total:
    """How many readings there are, and the bytes of their JSON."""
    condition, values = where("readings", wanted, scope)
    row = sql.row(
        f"""
        SELECT COUNT(*) AS count, COALESCE(SUM(LENGTH(data)), 0) AS size
        FROM readings JOIN data_sources ON data_sources.number = readings.source WHERE {condition}
        """,
        *values,
    )
    return Total(int(row["count"]), int(row["size"])) if row is not None else Total()


def delete(sql: Sql, wanted: Wanted, scope: Scope) -> int:
    """Delete readings; how many there were."""
    condition, values = where("readings", wanted, scope)
    return sql.run(
        f"""
        DELETE FROM readings WHERE number IN (
            SELECT readings.number FROM readings JOIN data_sources ON data_sources.number = readings.source
            WHERE {condition}
        )
        """,
        *values,
    )


def forget_uploads(sql: Sql, now: datetime) -> int:
    """Uploads that long ago are not repeated any more. A part of them at a time; how many."""
    old = "SELECT key FROM data_uploads WHERE synced < ? ORDER BY synced LIMIT ?"
    return sql.run(f"DELETE FROM data_uploads WHERE key IN ({old})", stored(now - REMEMBERED), AT_ONCE)


def _read(sql: Sql, rows: Sequence[Mapping[str, Any]]) -> list[ReadingRecord]:
    sources = {row["source"]: read(row) for row in rows}
    tags = tags_of(sql, sources)
    return [
        ReadingRecord(
            number=row["number"],
            source_number=row["source"],
            source=sources[row["source"]],
            tags=tuple(tags[row["source"]]),
            requested=moment_of(row["requested"]),
            received=moment_of(row["received"]),
            synced=moment_of(row["synced"]),
            text=row["data"],
        )
        for row in rows
    ]
