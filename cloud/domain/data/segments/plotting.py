"""Readings over a range of time, for plots, where some of them are in segments; see `cloud.domain.data.series`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from cloud.domain.data import series
from cloud.domain.data.filters import DataFilter, DataScope, conditions
from cloud.domain.data.pages import Page
from cloud.domain.data.readings import ReadingRecord
from cloud.domain.data.segments import columns
from cloud.domain.data.segments.listed import Segment, samples_of
from cloud.domain.data.segments.parquet import firsts
from cloud.domain.data.segments.reading import Range, Readings, overlapping, range_of
from cloud.domain.data.series import DAY, EXAMINED, LONGEST, MAX_SOURCES, Captured, SourceReadings
from cloud.store.sql import Row, Sql
from cloud.values.buckets import Buckets, buckets_of
from cloud.values.times import moment_of, stored

CANDIDATES: Final = 3 * MAX_SOURCES  # sources of which the newest reading in a range is looked for
READ: Final = 48  # segments of all sources together that are read for a plot; of more, the database has samples

_LAST: Final = 1 << 62  # number of a reading whose number does not matter: greater than all others


@dataclass(frozen=True, slots=True)
class _Part:
    """What one transaction knows about a source: its rows, its segments in the range, and samples of these if many."""

    rows: SourceReadings
    segments: Sequence[Segment]
    samples: Sequence[tuple[int, int, str]] | None


async def captured(readings: Readings, data_filter: DataFilter, points: int) -> Captured | None:
    """Return the readings of a range of time, as `series.captured` does, with those in segments.

    If a source has more than READ segments in the range, or its share of them, the sample has a few readings of each.
    """

    def only_rows(sql: Sql) -> tuple[bool, Captured | None]:
        scope = readings.scope(sql)
        rows = series.captured(sql, data_filter, scope, points)
        if rows is None or data_filter.start is not None:
            return not overlapping(sql, data_filter, scope, 1), rows
        # The range begins a day before the newest reading; if a segment has a newer one, it has it in this range, too.
        newest = max((moment for each in rows.sources for moment, _ in each.readings), default=rows.start)
        since = replace(data_filter, start=moment_of(max(newest - DAY, series.EARLIEST)))
        return not overlapping(sql, since, scope, 1), rows

    complete, rows = await readings.store.read(only_rows)
    return rows if complete else await _merged(readings, data_filter, points)


async def _merged(readings: Readings, data_filter: DataFilter, points: int) -> Captured | None:
    """Choose sources and buckets as `series.captured` does. Only the last transaction reads what is returned."""
    numbers, more = await readings.store.read(lambda sql: _candidates(sql, data_filter, readings.scope(sql)))
    newest: list[ReadingRecord] = []
    for number in numbers:
        newest += await readings.page(replace(data_filter, source=number), Page(limit=1, descending=True))
    newest.sort(key=lambda record: (record.requested, record.source_number), reverse=True)
    if not newest:
        return None
    more, chosen = more or len(newest) > MAX_SOURCES, newest[:MAX_SOURCES]
    last = stored(chosen[0].requested)
    end = last + 1 if data_filter.end is None else stored(data_filter.end)
    if data_filter.start is None:
        data_filter = replace(data_filter, start=moment_of(max(last - DAY, series.EARLIEST)))
        inside = [record for record in chosen if stored(record.requested) >= last - DAY]
        chosen, more = inside, more and len(inside) == len(chosen)
        first = [
            record
            for each in chosen
            for record in await readings.page(replace(data_filter, source=each.source_number), Page(limit=1))
        ]
        start = min((stored(record.requested) for record in first), default=last)
    else:
        start = stored(data_filter.start)
    shares = {
        each.source_number: await _share(readings, replace(data_filter, source=each.source_number)) // len(chosen)
        for each in chosen
    }
    buckets = buckets_of(start, end, max(2, min(points, *shares.values())))
    chosen.sort(key=lambda r: (r.source.machine, r.source.component, r.source.method, r.source_number))
    read = READ // len(chosen)
    parts = await readings.store.read(
        lambda sql: [
            _part(sql, data_filter, readings.scope(sql), each, buckets, shares[each.source_number], read)
            for each in chosen
        ]
    )
    sources = [
        await _source(readings, part, each, range_of(data_filter), buckets, shares[each.source_number])
        for each, part in zip(chosen, parts, strict=True)
    ]
    return Captured(start, end, buckets, tuple(sources), more)


def _candidates(sql: Sql, data_filter: DataFilter, scope: DataScope) -> tuple[list[int], bool]:
    """Return the sources whose readings are the newest, if those of their last segments are, and whether there are
    more.
    """
    of_rows, of_segments = conditions("readings", data_filter, scope), conditions("segments", data_filter, scope)
    rows = sql.rows(
        f"""
        SELECT number, newest, sealed FROM (
            SELECT data_sources.number AS number, (
                SELECT requested FROM readings WHERE readings.source = data_sources.number AND {of_rows.rows}
                ORDER BY requested DESC LIMIT 1
            ) AS newest, (
                SELECT last FROM segments WHERE segments.source = data_sources.number AND {of_segments.rows}
                ORDER BY last DESC LIMIT 1
            ) AS sealed FROM data_sources WHERE {of_rows.sources}
        ) AS one WHERE newest IS NOT NULL OR sealed IS NOT NULL
        """,
        *of_rows.row_values,
        *of_segments.row_values,
        *of_rows.source_values,
    )
    end = None if data_filter.end is None else stored(data_filter.end) - 1

    def at_most(row: Row) -> tuple[int, int]:
        moment = max(each for each in (row["newest"], row["sealed"]) if each is not None)
        return (moment if end is None else min(moment, end), row["number"])

    ordered = sorted(rows, key=at_most, reverse=True)
    return [row["number"] for row in ordered[:CANDIDATES]], len(ordered) > CANDIDATES


async def _share(readings: Readings, data_filter: DataFilter) -> int:
    """Return how many readings may be parsed if all are like the newest of a source."""
    records = await readings.page(data_filter, Page(limit=EXAMINED, descending=True))
    return series.share_of(max((len(record.text) for record in records), default=1))


def _part(
    sql: Sql, data_filter: DataFilter, scope: DataScope, chosen: ReadingRecord, buckets: Buckets, most: int, read: int
) -> _Part:
    own = replace(data_filter, source=chosen.source_number)
    source = series.ChosenSource(chosen.source_number, chosen.source, chosen.tags, stored(chosen.requested))
    rows = series.readings_of(sql, source, data_filter, scope, buckets, most)
    segments = sorted(overlapping(sql, own, scope), key=lambda segment: segment.first)
    within = range_of(data_filter)
    inside = [segment for segment in segments if within.holds(segment)]
    samples = samples_of(sql, (segment.number for segment in inside)) if len(inside) > read else None
    return _Part(rows, segments, samples)


async def _source(
    readings: Readings, part: _Part, chosen: ReadingRecord, within: Range, buckets: Buckets, most: int
) -> SourceReadings:
    """Return all readings of a source if they are at most `most`, else the first ones of equal parts of each bucket."""
    files = readings.files
    inside = [segment for segment in part.segments if within.holds(segment)]
    partly = [segment for segment in part.segments if not within.holds(segment)]
    rows: list[columns.SegmentRow] = []
    count = sum(segment.count for segment in inside) + len(part.rows.readings)
    sampled = part.rows.sampled or count > most
    for segment in () if sampled else partly:
        count += await files.count(segment, within)
        sampled = count > most
        if sampled:
            break
    if not sampled:
        for segment in part.segments:
            rows += await files.rows(segment, within)
        whole: SourceReadings = await files.run(partial(_complete, part, chosen, rows))
        return whole
    step = series.part_of(buckets, most)
    for segment in (*partly, *(inside if part.samples is None else ())):
        content = await files.content(segment)
        rows += await files.run(partial(firsts, content, within.low, within.high, buckets.first, step))
    sample: SourceReadings = await files.run(partial(_sampled, part, chosen, rows, buckets.first, step))
    return sample


def _complete(part: _Part, chosen: ReadingRecord, rows: Sequence[columns.SegmentRow]) -> SourceReadings:
    readings = [*_texts(rows), *((moment, 0, text) for moment, text in part.rows.readings)]
    return SourceReadings(chosen.source, chosen.tags, False, _ordered(readings))


def _sampled(
    part: _Part, chosen: ReadingRecord, rows: Sequence[columns.SegmentRow], origin: int, step: int
) -> SourceReadings:
    """Return the first reading of each step of time, from `origin` on."""
    readings = [*_texts(rows), *(part.samples or ()), *((moment, _LAST, text) for moment, text in part.rows.readings)]
    first: dict[int, tuple[int, int, str]] = {}
    for reading in sorted(readings):
        first.setdefault((reading[0] - origin) // step, reading)
    return SourceReadings(chosen.source, chosen.tags, True, _ordered(first.values()))


def _texts(rows: Iterable[columns.SegmentRow]) -> Iterator[tuple[int, int, str]]:
    return ((row.requested, row.number, row.text) for row in rows)


def _ordered(readings: Iterable[tuple[int, int, str]]) -> tuple[tuple[int, str], ...]:
    return tuple((moment, text) for moment, _, text in sorted(readings) if len(text) <= LONGEST)
