"""Readings wherever they are: rows of the database, and segments. Everything that reads readings uses this.

One transaction reads the rows and lists the segments, so each reading is in exactly one of them. The files are read
afterwards: one that is replaced in the meantime stays in the store for days (`cloud.store.trash`). A position is the
same in a row and in a segment, so pages continue whatever is sealed between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from cloud.blobs import Blobs
from cloud.domain.data import readings
from cloud.domain.data.files import Total
from cloud.domain.data.filters import Conditions, DataFilter, DataScope, conditions
from cloud.domain.data.pages import Page
from cloud.domain.data.readings import ReadingRecord
from cloud.domain.data.segments.columns import SegmentRow
from cloud.domain.data.segments.contents import SegmentContents
from cloud.domain.data.segments.listed import COLUMNS, Segment, segment_of
from cloud.domain.data.segments.parquet import Position, RowGroupPlaces, between, counted, places
from cloud.domain.data.segments.sealing import Transactions, missing_file
from cloud.domain.data.sources import DataSource, by_numbers, chunks, tags_of
from cloud.store.sql import Sql, Value
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError
from support import RunBlocking

ScopeOf = Callable[[Sql], DataScope]
"""Function that returns what a caller may access, in the transaction that reads it."""

TOGETHER: Final = 16  # files of which a thread reads something in one call

_Place = tuple[RowGroupPlaces, int]
_OF_SOURCES: Final = "FROM data_sources CROSS JOIN segments WHERE segments.source = data_sources.number"


@dataclass(frozen=True, slots=True)
class Range:
    """Readings after `low` and before `high`."""

    low: Position | None
    high: Position | None

    def holds(self, segment: Segment) -> bool:
        """Return whether all readings of a segment are inside."""
        return (self.low is None or segment.first > self.low) and (self.high is None or segment.last < self.high)


@dataclass(frozen=True, slots=True)
class Files:
    """What is needed to read segments: the file store, contents in memory, and a thread."""

    blobs: Blobs
    contents: SegmentContents
    run: RunBlocking

    async def rows(
        self, segment: Segment, within: Range, most: int | None = None, *, newest: bool = False, of: str = "a source"
    ) -> list[SegmentRow]:
        """Return readings of a segment in a range, see `between`; UNAVAILABLE if its file cannot be read."""
        content = await self.content(segment, of)
        rows: list[SegmentRow] = await self.run(partial(between, content, within.low, within.high, most, newest=newest))
        return rows

    async def places(
        self, segments: Mapping[Segment, str], within: Range, most: int, *, newest: bool = False
    ) -> list[RowGroupPlaces]:
        """Return where the readings are that `rows` returns of each of several segments, which have names."""
        contents = [await self.content(segment, of) for segment, of in segments.items()]

        def read() -> list[RowGroupPlaces]:
            return [
                each for content in contents for each in places(content, within.low, within.high, most, newest=newest)
            ]

        result: list[RowGroupPlaces] = await self.run(read)
        return result

    async def count(self, segment: Segment, within: Range) -> int:
        """Return the number of readings of a segment in a range; UNAVAILABLE if its file cannot be read."""
        content = await self.content(segment)
        count: int = await self.run(partial(counted, content, within.low, within.high))
        return count

    async def content(self, segment: Segment, of: str = "a source") -> bytes:
        """Return the file of a segment; UNAVAILABLE if it cannot be read."""
        try:
            return await self.contents.of(self.blobs, segment.blob)
        except MachineError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                raise missing_file(of) from error
            raise


@dataclass(frozen=True, slots=True)
class _Listed:
    """Segments that a page may need: those to read in any case, then others by the position of their next reading."""

    always: Sequence[Segment]
    ordered: Sequence[Segment]
    within: Range
    sources: dict[int, DataSource]
    tags: dict[int, list[str]]

    def name(self, segment: Segment) -> str:
        """Return the name of the source of a segment, for messages."""
        source = self.sources[segment.source]
        return f"{source.machine}, {source.component} {source.method}"


class Readings:
    """All readings that a caller may access."""

    def __init__(self, store: Transactions, files: Files, scope: ScopeOf) -> None:
        self.store = store
        self.files = files
        self.scope = scope

    async def page(self, data_filter: DataFilter, page: Page) -> list[ReadingRecord]:
        """Return a page of readings, ordered by capture time.

        Of a segment, the positions are read first, because most of those that many sources have around the same time
        are not on the page.
        """

        def work(sql: Sql) -> tuple[list[ReadingRecord], _Listed]:
            scope = self.scope(sql)
            records = readings.query(sql, data_filter, scope, page)
            return records, _listed(sql, data_filter, scope, page, records)

        records, listed = await self.store.read(work)
        if not listed.always and not listed.ordered:
            return records
        merged: list[tuple[Position, ReadingRecord | _Place]] = [
            (readings.position(record), record) for record in records
        ]
        # Those that reach over the page's start are read together; of the others, the first ones may fill the page.
        for segments in (*chunks(list(listed.always), TOGETHER), *([each] for each in listed.ordered)):
            full, within = len(merged) == page.rows, listed.within
            if full:
                last = merged[-1][0]
                segments, within = (
                    [each for each in segments if _contributes(each, last, page)],
                    _before(last, within, page),
                )
            if segments:
                names = {segment: listed.name(segment) for segment in segments}
                for each in await self.files.places(names, within, page.rows, newest=page.descending):
                    merged += ((position, (each, place)) for place, position in enumerate(each.positions))
                merged.sort(key=lambda entry: entry[0], reverse=page.descending)
                del merged[page.rows :]
        return await self._records(merged, listed)

    async def _records(
        self, merged: Sequence[tuple[Position, ReadingRecord | _Place]], listed: _Listed
    ) -> list[ReadingRecord]:
        """Return the readings of a page. Of those of a segment, the ones on the page follow each other."""
        chosen: dict[RowGroupPlaces, list[int]] = {}
        for _, entry in merged:
            if isinstance(entry, tuple):
                chosen.setdefault(entry[0], []).append(entry[1])
        rows: dict[Position, SegmentRow] = {}
        for some in chunks(list(chosen.items()), TOGETHER):
            for row in await self.files.run(partial(_rows, some)):
                rows[row.requested, row.number] = row
        return [
            entry if isinstance(entry, ReadingRecord) else _record(rows[position], listed) for position, entry in merged
        ]

    async def total(self, data_filter: DataFilter) -> Total:
        """Return the number of matching readings, and the size of their JSON text.

        All matching rows are read, and of each source the segments at the ends of the range.
        """
        within = range_of(data_filter)

        def work(sql: Sql) -> tuple[Total, list[Segment]]:
            scope = self.scope(sql)
            total = readings.total(sql, data_filter, scope)
            whole, partly = _totals(sql, conditions("segments", data_filter, scope), within)
            return Total(total.count + whole.count, total.size + whole.size), partly

        total, partly = await self.store.read(work)
        count, size = total.count, total.size
        for segment in partly:
            rows = await self.files.rows(segment, within)
            count, size = count + len(rows), size + sum(len(row.text) for row in rows)
        return Total(count, size)


def range_of(data_filter: DataFilter) -> Range:
    """Return the range of a filter; numbers of readings are greater than -1."""
    low = None if data_filter.start is None else (stored(data_filter.start), -1)
    return Range(low, None if data_filter.end is None else (stored(data_filter.end), -1))


def overlapping(sql: Sql, data_filter: DataFilter, scope: DataScope, limit: int | None = None) -> list[Segment]:
    """Return segments that may have matching readings, at most `limit`."""
    matching = conditions("segments", data_filter, scope)
    condition, values = matching.both()
    at_most, limit_values = ("", ()) if limit is None else (" LIMIT ?", (limit,))
    rows = sql.rows(f"SELECT {COLUMNS} {_OF_SOURCES} AND {condition}{at_most}", *values, *limit_values)
    return [segment_of(row) for row in rows]


def _rows(chosen: Sequence[tuple[RowGroupPlaces, Sequence[int]]]) -> list[SegmentRow]:
    return [row for places, own in chosen for row in places.rows(min(own), max(own))]


def _contributes(segment: Segment, last: Position, page: Page) -> bool:
    """Return whether a segment may have readings before the last one of a full page."""
    return segment.last > last if page.descending else segment.first < last


def _before(last: Position, within: Range, page: Page) -> Range:
    """Return the range of the readings that come before the last one of a full page."""
    return replace(within, low=last) if page.descending else replace(within, high=last)


def _listed(
    sql: Sql, data_filter: DataFilter, scope: DataScope, page: Page, records: Sequence[ReadingRecord]
) -> _Listed:
    """List the segments that a page may need, whose rows in the database are `records`.

    Of those that begin after the page's start, each has at least one reading on the page or none: as many as the page
    has rows are enough, in the order of their first (or, descending, their last) readings.
    """
    within = _within(range_of(data_filter), page, records)
    matching = conditions("segments", data_filter, scope)
    near, far = ("last", "first") if page.descending else ("first", "last")
    start, end = (within.high, within.low) if page.descending else (within.low, within.high)
    before, after = (">", "<") if page.descending else ("<", ">")
    reaching, values = _compared(near, before, end)
    always: list[Segment] = []
    if start is not None:
        around, around_values = _compared(near, f"{before}=", start)
        beyond, beyond_values = _compared(far, after, start)
        # A segment around the start may lie on both sides of the end, too.
        always = _select(sql, matching, f"{around} AND {beyond}", (*around_values, *beyond_values), "")
    following, following_values = _compared(near, after, start)
    order = "DESC" if page.descending else "ASC"
    ordered = _select(
        sql,
        matching,
        f"{following} AND {reaching}",
        (*following_values, *values),
        f" ORDER BY segments.{near} {order}, segments.{near}_number {order} LIMIT ?",
        page.rows,
    )
    numbers = {segment.source for segment in (*always, *ordered)}
    return _Listed(always, ordered, within, by_numbers(sql, numbers), tags_of(sql, numbers) if numbers else {})


def _within(range_: Range, page: Page, records: Sequence[ReadingRecord]) -> Range:
    """Return the range of the readings that a page may have."""
    low, high = range_.low, range_.high
    last = readings.position(records[-1]) if len(records) == page.rows else None
    if page.descending:
        return Range(_greater(low, last), _lesser(high, page.after))
    return Range(_greater(low, page.after), _lesser(high, last))


def _greater(*bounds: Position | None) -> Position | None:
    return max((bound for bound in bounds if bound is not None), default=None)


def _lesser(*bounds: Position | None) -> Position | None:
    return min((bound for bound in bounds if bound is not None), default=None)


def _compared(name: str, operator: str, position: Position | None) -> tuple[str, tuple[Value, ...]]:
    """Return condition and parameters for the first or last position of segments."""
    if position is None:
        return "1 = 1", ()
    return f"(segments.{name}, segments.{name}_number) {operator} (?, ?)", position


def _select(
    sql: Sql, matching: Conditions, condition: str, values: tuple[Value, ...], order: str, *limit: int
) -> list[Segment]:
    both, both_values = matching.both()
    rows = sql.rows(f"SELECT {COLUMNS} {_OF_SOURCES} AND {both} AND {condition}{order}", *both_values, *values, *limit)
    return [segment_of(row) for row in rows]


def _totals(sql: Sql, matching: Conditions, within: Range) -> tuple[Total, list[Segment]]:
    """Return the total of all segments that are inside a range, and the segments that are partly inside."""
    both, values = matching.both()
    after, after_values = _compared("first", ">", within.low)
    before, before_values = _compared("last", "<", within.high)
    row = sql.row(
        "SELECT COALESCE(SUM(segments.count), 0) AS count, COALESCE(SUM(segments.characters), 0) AS size "
        f"{_OF_SOURCES} AND {both} AND {after} AND {before}",
        *values,
        *after_values,
        *before_values,
    )
    assert row is not None
    partly: list[Segment] = []
    if within.low is not None or within.high is not None:
        partly = _select(sql, matching, f"NOT ({after} AND {before})", (*after_values, *before_values), "")
    return Total(int(row["count"]), int(row["size"])), partly


def _record(row: SegmentRow, listed: _Listed) -> ReadingRecord:
    return ReadingRecord(
        number=row.number,
        source_number=row.source,
        source=listed.sources[row.source],
        tags=tuple(listed.tags[row.source]),
        requested=moment_of(row.requested),
        received=moment_of(row.received),
        synced=moment_of(row.synced),
        text=row.text,
    )
