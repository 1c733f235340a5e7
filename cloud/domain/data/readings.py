"""Tabular readings: results of methods as JSON, with the times of request and response."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final, TypeAlias

import msgspec

from cloud.domain.data.files import Total
from cloud.domain.data.filters import DataFilter, DataScope, where
from cloud.domain.data.pages import Page, Position, rows_of
from cloud.domain.data.sources import COLUMNS, DataSource, numbers_of, read, tags_of
from cloud.store.sql import Sql
from cloud.values.names import new_id
from cloud.values.times import moment_of, stored

REMEMBERED: Final = timedelta(days=30)  # how long repetitions of an upload are recognized
AT_ONCE: Final = 5000  # readings or upload records that one transaction deletes; others wait in the meantime


NewReading: TypeAlias = tuple[int, int, str]
"""A reading to be stored: stored forms of the times of request and receipt, and its data as `text_of` writes them."""


def new_reading(requested: datetime, received: datetime, data: Mapping[str, Any]) -> NewReading:
    """Return a new reading with data as a machine has sent them."""
    return stored(requested), stored(received), text_of(data)


def text_of(data: Mapping[str, Any]) -> str:
    """Return data that a machine has sent in their stored form: JSON, identical for equal data."""
    text = _encode(data).decode()
    # JSON has no NaN or infinity; Python's own encoder writes them anyway, and its decoder reads them.
    return json.dumps(data, ensure_ascii=False, sort_keys=True) if "null" in text else text


_encode: Final = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class ReadingRecord:
    """A stored reading.

    `number` increases in the order of arrival; `source_number` is the same for equal source and tags; `text` is the
    data as JSON.
    """

    number: int
    source_number: int
    source: DataSource
    tags: tuple[str, ...]
    requested: datetime
    received: datetime
    synced: datetime
    text: str

    @property
    def data(self) -> Any:
        """`text` parsed on each access; avoid this in transactions, which block others."""
        return json.loads(self.text)


def position(record: ReadingRecord) -> Position:
    """Return the position of a reading in the order of pages."""
    return stored(record.requested), record.number


@dataclass(frozen=True, slots=True)
class NewUpload:
    """An upload to be stored. An upload with the `key` of one that was stored before is not stored again."""

    key: str | None
    source: DataSource
    tags: Sequence[str]
    readings: Sequence[NewReading]
    synced: datetime  # when it arrived


def keep(sql: Sql, uploads: Sequence[NewUpload]) -> list[tuple[str, bool]]:
    """Store the readings of uploads, in as few statements for many as for one.

    Return for each its id, and whether it is new.
    """
    kept = [(new_id(), True) for _ in uploads]
    keyed = [place for place, upload in enumerate(uploads) if upload.key is not None]
    if keyed:
        # Insert without a query first: otherwise uploads of different machines would conflict (PostgreSQL).
        rows = [(uploads[place].key, kept[place][0], stored(uploads[place].synced)) for place in keyed]
        statement = f"""
            INSERT INTO data_uploads (key, file_id, synced) VALUES {", ".join(["(?, ?, ?)"] * len(rows))}
            ON CONFLICT (key) DO NOTHING RETURNING file_id
        """
        added = {row["file_id"] for row in sql.rows(statement, *chain.from_iterable(rows))}
        for place in keyed:
            if kept[place][0] not in added:
                row = sql.row("SELECT file_id FROM data_uploads WHERE key = ?", uploads[place].key)
                assert row is not None
                kept[place] = row["file_id"], False
    new = [upload for upload, (_, is_new) in zip(uploads, kept, strict=True) if is_new]
    numbers = numbers_of(sql, [(upload.source, upload.tags) for upload in new])
    if new:
        sql.many(
            "INSERT INTO readings (source, requested, received, synced, data) VALUES (?, ?, ?, ?, ?)",
            [
                (number, requested, received, synced, text)
                for upload, number in zip(new, numbers, strict=True)
                for synced in (stored(upload.synced),)
                for requested, received, text in upload.readings
            ],
        )
    for part in {upload.source.part_id: None for upload in new}:
        sql.notify("data", part)
    return kept


_READING: Final = f"""
    SELECT readings.number AS number, source, requested, received, synced, data, {COLUMNS}
    FROM readings JOIN data_sources ON data_sources.number = readings.source
"""


def query(sql: Sql, data_filter: DataFilter, scope: DataScope, page: Page) -> list[ReadingRecord]:
    """Return a page of readings that are rows, ordered by capture time; `segments.reading` adds those in segments."""
    return _records(sql, rows_of(sql, "readings", _READING, data_filter, scope, page))


# SQLite keeps the order of tables in a CROSS JOIN, so it searches the index of each source. For other databases this is
# an ordinary JOIN.
_OF_SOURCES: Final = "FROM data_sources CROSS JOIN readings WHERE readings.source = data_sources.number"


def total(sql: Sql, data_filter: DataFilter, scope: DataScope) -> Total:
    """Return the number of matching rows, and the size of their JSON text. This reads all of them."""
    condition, values = where("readings", data_filter, scope)
    row = sql.row(
        f"""
        SELECT COUNT(*) AS count, COALESCE(SUM(LENGTH(data)), 0) AS size {_OF_SOURCES} AND {condition}
        """,
        *values,
    )
    return Total(int(row["count"]), int(row["size"])) if row is not None else Total()


def delete(sql: Sql, data_filter: DataFilter, scope: DataScope) -> int:
    """Delete up to AT_ONCE matching rows; return their number."""
    condition, values = where("readings", data_filter, scope)
    return sql.run(
        f"DELETE FROM readings WHERE number IN (SELECT readings.number {_OF_SOURCES} AND {condition} LIMIT ?)",
        *values,
        AT_ONCE,
    )


def forget_uploads(sql: Sql, now: datetime) -> int:
    """Delete up to AT_ONCE upload records older than REMEMBERED; return their number."""
    old = "SELECT key FROM data_uploads WHERE synced < ? ORDER BY synced LIMIT ?"
    return sql.run(f"DELETE FROM data_uploads WHERE key IN ({old})", stored(now - REMEMBERED), AT_ONCE)


def _records(sql: Sql, rows: Sequence[Mapping[str, Any]]) -> list[ReadingRecord]:
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
