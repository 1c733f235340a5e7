"""Segments as rows of the database: which there are, what is in them, and how they come and go.

A segment has readings of one source. It is in the table `segments`, for pages and plots, and in the catalog, for other
programs; both change in one transaction with the rows of `readings` that it replaces.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.blobs import Blob, name_of
from cloud.domain.data.segments import catalog
from cloud.domain.data.segments.columns import SegmentRow
from cloud.domain.data.segments.parquet import Position, Summary
from cloud.domain.data.sources import chunks
from cloud.store import trash
from cloud.store.sql import Sql, inserted
from cloud.values.times import stored

SAMPLES: Final = 8  # readings of a segment that are kept in the database
LONGEST: Final = 4096  # characters of the JSON of a sample: longer readings are no samples


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment, with the positions of its first and its last reading."""

    number: int
    source: int
    blob: str
    count: int
    characters: int
    first: Position
    last: Position


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What the table `segments` says about the readings of a segment."""

    source: int
    count: int
    characters: int  # of the JSON of all readings
    first: Position
    last: Position
    synced: int  # when the last one arrived
    samples: Sequence[tuple[int, int, str]]  # time, number and text


@dataclass(frozen=True, slots=True)
class NewSegment:
    """A segment that is to be added. `ids` are the numbers of its columns in the catalog."""

    facts: SegmentFacts
    content: bytes
    ids: Sequence[int]
    summaries: Sequence[Summary]


@dataclass(frozen=True, slots=True)
class SegmentTotals:
    """How much is in segments."""

    segments: int
    readings: int
    size: int  # in bytes


COLUMNS: Final = (
    "segments.number AS number, segments.source AS source, segments.blob AS blob, segments.count AS count, "
    "segments.characters AS characters, segments.first AS first, segments.first_number AS first_number, "
    "segments.last AS last, segments.last_number AS last_number"
)


def segment_of(row: Mapping[str, Any]) -> Segment:
    """Return the segment in the columns COLUMNS of a row."""
    return Segment(
        row["number"],
        row["source"],
        row["blob"],
        row["count"],
        row["characters"],
        (row["first"], row["first_number"]),
        (row["last"], row["last_number"]),
    )


def facts_of(rows: Sequence[SegmentRow]) -> SegmentFacts:
    """Return what is to be said about readings of one source."""
    rows = sorted(rows, key=lambda row: (row.requested, row.number))
    first, last = rows[0], rows[-1]
    return SegmentFacts(
        first.source,
        len(rows),
        sum(len(row.text) for row in rows),
        (first.requested, first.number),
        (last.requested, last.number),
        max(row.synced for row in rows),
        _samples(rows),
    )


def add(sql: Sql, owner: str, new: NewSegment, blob: Blob, now: datetime) -> None:
    """Add a segment whose file is in the file store."""
    facts = new.facts
    number = catalog.add(sql, owner, name_of(blob.key), new.content, new.ids, new.summaries, now)
    inserted(
        sql,
        "segments",
        {
            "number": number,
            "source": facts.source,
            "blob": blob.key,
            "digest": blob.digest,
            "size": blob.size,
            "count": facts.count,
            "characters": facts.characters,
            "first": facts.first[0],
            "first_number": facts.first[1],
            "last": facts.last[0],
            "last_number": facts.last[1],
            "synced": facts.synced,
            "samples": json.dumps(facts.samples),
        },
    )


def drop(sql: Sql, owner: str, numbers: Sequence[int], now: datetime) -> tuple[int, int]:
    """Remove segments; return how many there were, and how many readings were in them. Their files go to the trash."""
    count = readings = 0
    removed = []
    for number in numbers:
        for row in sql.rows("DELETE FROM segments WHERE number = ? RETURNING blob, count", number):
            trash.put(sql, [row["blob"]], now)
            removed.append(number)
            count, readings = count + 1, readings + int(row["count"])
    catalog.drop(sql, owner, removed, now)
    return count, readings


def expire(sql: Sql, owner: str, before: int, now: datetime, most: int) -> int:
    """Remove at most `most` segments of an organization that have only readings that arrived before a stored time.

    Return the number of their readings.
    """
    # SQLite keeps the order of tables in a CROSS JOIN, so it searches the index (source, synced) once for each source.
    rows = sql.rows(
        """
        SELECT segments.number AS number FROM data_sources CROSS JOIN segments
        WHERE data_sources.organization_id = ? AND segments.source = data_sources.number AND segments.synced < ? LIMIT ?
        """,
        owner,
        before,
        most,
    )
    return drop(sql, owner, [row["number"] for row in rows], now)[1]


def described(sql: Sql, after: int, most: int) -> list[dict[str, Any]]:
    """Return at most `most` segments with numbers above `after`, in the order of their numbers, with their sources."""
    return [
        dict(row)
        for row in sql.rows(
            """
            SELECT segments.number AS number, segments.blob AS blob, segments.source AS source,
                segments.count AS readings, segments.size AS bytes, segments.first AS first, segments.last AS last,
                data_sources.organization_id AS organization, data_sources.machine AS machine,
                data_sources.part_id AS part, data_sources.component_type AS type, data_sources.component AS component,
                data_sources.method AS method
            FROM segments CROSS JOIN data_sources
            WHERE segments.number > ? AND data_sources.number = segments.source ORDER BY segments.number LIMIT ?
            """,
            after,
            most,
        )
    ]


def forget(sql: Sql, owner: str, now: datetime) -> None:
    """Remove all segments of an organization, and its table in the catalog."""
    rows = sql.rows(
        """
        SELECT segments.number AS number FROM data_sources CROSS JOIN segments
        WHERE data_sources.organization_id = ? AND segments.source = data_sources.number
        """,
        owner,
    )
    drop(sql, owner, [row["number"] for row in rows], now)
    catalog.forget(sql, owner, now)


def samples_of(sql: Sql, numbers: Iterable[int]) -> list[tuple[int, int, str]]:
    """Return time, number and text of the samples of segments."""
    return [
        (moment, each, text)
        for chunk in chunks(list(numbers))
        for row in sql.rows(f"SELECT samples FROM segments WHERE number IN ({', '.join('?' * len(chunk))})", *chunk)
        for moment, each, text in json.loads(row["samples"])
    ]


def figures(sql: Sql) -> SegmentTotals:
    """Return how much is in segments, of all organizations."""
    row = sql.row(
        "SELECT (SELECT COUNT(*) FROM segments) AS segments, COALESCE(SUM(record_count), 0) AS readings, "
        "COALESCE(SUM(file_size_bytes), 0) AS size FROM ducklake_table_stats"
    )
    assert row is not None
    return SegmentTotals(int(row["segments"]), int(row["readings"]), int(row["size"]))


def expect(sql: Sql, key: str, now: datetime) -> None:
    """Note a file that is about to be uploaded: unless `claim` follows, the sweep removes it."""
    trash.put(sql, [key], now)


def claim(sql: Sql, key: str, since: datetime) -> bool:
    """Keep an expected file; False if it was not expected since then, so that the sweep may have removed it."""
    return sql.run("DELETE FROM trash WHERE blob = ? AND since >= ?", key, stored(since)) == 1


def blobs_from(sql: Sql, first: str, last: str) -> dict[str, Blob]:
    """Return the blobs of segments with keys from `first` on and before `last`."""
    rows = sql.rows("SELECT blob, size, digest FROM segments WHERE blob >= ? AND blob < ?", first, last)
    return {row["blob"]: Blob(row["blob"], row["size"], row["digest"]) for row in rows}


def sample(sql: Sql, count: int) -> list[str]:
    """Return the keys of the oldest and the newest segments, at most `count` of each."""
    rows = sql.rows("SELECT blob FROM segments ORDER BY number LIMIT ?", count)
    return [row["blob"] for row in rows + sql.rows("SELECT blob FROM segments ORDER BY number DESC LIMIT ?", count)]


def _samples(rows: Sequence[SegmentRow]) -> list[tuple[int, int, str]]:
    """Return the first readings of equal parts of a segment."""
    start, span = rows[0].requested, rows[-1].requested - rows[0].requested + 1
    chosen: dict[int, tuple[int, int, str]] = {}
    for row in rows:
        if len(row.text) <= LONGEST:
            chosen.setdefault((row.requested - start) * SAMPLES // span, (row.requested, row.number, row.text))
    return list(chosen.values())
