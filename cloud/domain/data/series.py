"""Readings over a range of time, for plots: all of them if they are few, else a sample of each bucket of time.

This is the only source of plots. The cost depends on what is returned, not on what is stored: a sample is read by the
index of capture times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from cloud.domain.data.buckets import FieldNumbers, fields_of
from cloud.domain.data.filters import Conditions, DataFilter, DataScope, conditions
from cloud.domain.data.sources import COLUMNS, DataSource, read, tags_of
from cloud.store.sql import Row, Sql
from cloud.values.buckets import Buckets, buckets_of
from cloud.values.times import moment_of, stored
from schema import ConfigError

MAX_SOURCES: Final = 12
MAX_FIELDS: Final = 40  # of all sources together
MAX_POINTS: Final = 2000  # buckets
POINTS: Final = 600  # by default: about one for each pixel of a plot on a phone
MOST: Final = 12_000  # readings of all sources together that are parsed
CHARACTERS: Final = 3_000_000  # of all sources together: parsing them takes half a second
PARTS: Final = 8  # of a bucket, from each of which a sample has a reading
EXAMINED: Final = 20  # newest readings of a source, for an estimate of the size of others
LONGEST: Final = 4096  # characters of the JSON of a reading: longer ones are left out
DAY: Final = timedelta(days=1) // timedelta(microseconds=1)
EARLIEST: Final = stored(datetime.min.replace(tzinfo=UTC))
_DATA: Final = f"CASE WHEN LENGTH(data) <= {LONGEST} THEN data END AS data"


@dataclass(frozen=True, slots=True)
class SourceReadings:
    """Readings of a source as times and JSON, oldest first, without those longer than LONGEST.

    If `sampled`, there are more readings: these are the first ones of equal parts of each bucket.
    """

    source: DataSource
    tags: tuple[str, ...]
    sampled: bool
    readings: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Captured:
    """Readings of at most MAX_SOURCES sources in a range of time; with `more`, other sources have some in it, too."""

    start: int
    end: int
    buckets: Buckets
    sources: tuple[SourceReadings, ...]
    more: bool

    @property
    def size(self) -> int:
        """Characters of all readings."""
        return sum(len(text) for source in self.sources for _, text in source.readings)

    def parsed(self, names: Sequence[str] = ()) -> Plotted:
        """Parse the readings; see `fields_of` for `names`. This takes half a second at most, outside a transaction."""
        left, series = MAX_FIELDS, []
        for source in self.sources:
            fields, others = fields_of(source.readings, self.buckets, left, names)
            left -= len(fields)
            series.append(SourceSeries(source.source, source.tags, source.sampled, tuple(fields), tuple(others)))
        return Plotted(self.start, self.end, self.buckets, tuple(series), self.more)


@dataclass(frozen=True, slots=True)
class SourceSeries:
    """Numbers of a source, and names of further fields with numbers, some of them if there are many.

    If `sampled`, the numbers are those of a sample of its readings: there may be lesser and greater ones.
    """

    source: DataSource
    tags: tuple[str, ...]
    sampled: bool
    fields: tuple[FieldNumbers, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plotted:
    """Numbers of sources in buckets of time; with `more`, other sources have readings in the range too."""

    start: int
    end: int
    buckets: Buckets
    series: tuple[SourceSeries, ...]
    more: bool

    @property
    def sampled(self) -> bool:
        """Whether any of the series is a sample."""
        return any(each.sampled for each in self.series)


@dataclass(frozen=True, slots=True)
class ChosenSource:
    """A source with readings in the range, and the time of the newest one."""

    number: int
    source: DataSource
    tags: tuple[str, ...]
    newest: int


def check_series(data_filter: DataFilter, names: Sequence[str], points: int) -> None:
    """Raise ConfigError, with the path of an argument, unless these are arguments of `captured` and `parsed`."""
    if not 2 <= points <= MAX_POINTS:
        remedy = f"use a number from 2 to {MAX_POINTS}"
        raise ConfigError("points", f"{points} is out of range", value=points, remedy=remedy)
    if len(names) > MAX_FIELDS:
        remedy = f"name at most {MAX_FIELDS}"
        raise ConfigError("field", f"{len(names)} fields are too many", value=len(names), remedy=remedy)
    start, end = data_filter.start, data_filter.end
    if start is not None and end is not None and start >= end:
        remedy = "use a time after its start"
        raise ConfigError("to", "the range ends when it starts, or before", value=end.isoformat(), remedy=remedy)


def captured(sql: Sql, data_filter: DataFilter, scope: DataScope, points: int) -> Captured | None:
    """Return the readings of a range of time, in at most `points` buckets; None if there is no reading.

    The range is that of the filter. Without an end, it ends with the newest reading. Without a start, it starts with
    the first reading of the DAY before the newest one. Of many sources, those with the newest readings are returned.
    There are fewer than `points` buckets if one reading in each would be too many to be parsed.
    """
    sources, more = _chosen(sql, data_filter, scope)
    if not sources:
        return None
    newest = sources[0].newest
    end = newest + 1 if data_filter.end is None else stored(data_filter.end)
    if data_filter.start is None:
        data_filter = replace(data_filter, start=moment_of(max(newest - DAY, EARLIEST)))
        inside = [each for each in sources if each.newest >= newest - DAY]
        sources, more = inside, more and len(inside) == len(sources)
        of_rows = conditions("readings", data_filter, scope)
        start = min(_first(sql, each.number, of_rows) for each in sources)
    else:
        start, of_rows = stored(data_filter.start), conditions("readings", data_filter, scope)
    shares = {each.number: _share(sql, each.number, of_rows) // len(sources) for each in sources}
    buckets = buckets_of(start, end, max(2, min(points, *shares.values())))
    later = conditions("readings", replace(data_filter, start=None), scope)
    sources.sort(key=lambda each: (each.source.machine, each.source.component, each.source.method, each.number))
    read_sources = tuple(_readings(sql, each, of_rows, later, buckets, shares[each.number]) for each in sources)
    return Captured(start, end, buckets, read_sources, more)


def _chosen(sql: Sql, data_filter: DataFilter, scope: DataScope) -> tuple[list[ChosenSource], bool]:
    """Return the MAX_SOURCES sources with the newest readings, newest first, and whether there are more."""
    matching = conditions("readings", data_filter, scope)
    newest = f"""
        SELECT {{column}} FROM readings WHERE readings.source = data_sources.number AND {matching.rows}
        ORDER BY requested DESC, readings.number DESC LIMIT 1
    """
    rows = sql.rows(
        f"""
        SELECT * FROM (
            SELECT data_sources.number AS number, {COLUMNS}, ({newest.format(column="requested")}) AS newest
            FROM data_sources WHERE {matching.sources}
        ) AS one WHERE newest IS NOT NULL ORDER BY newest DESC, number DESC LIMIT ?
        """,
        *matching.row_values,
        *matching.source_values,
        MAX_SOURCES + 1,
    )
    tags = tags_of(sql, [row["number"] for row in rows])
    return [
        ChosenSource(row["number"], read(row), tuple(tags[row["number"]]), row["newest"]) for row in rows[:MAX_SOURCES]
    ], len(rows) > MAX_SOURCES


def _share(sql: Sql, number: int, of_rows: Conditions) -> int:
    """Return how many readings may be parsed if all are like those of a source."""
    newest = f"SELECT data FROM readings WHERE readings.source = ? AND {of_rows.rows} ORDER BY requested DESC LIMIT ?"
    query = f"SELECT MAX(LENGTH(data)) AS size FROM ({newest}) AS one"
    size: int = sql.rows(query, number, *of_rows.row_values, EXAMINED)[0]["size"]
    return share_of(size)


def share_of(size: int) -> int:
    """Return how many readings may be parsed if the JSON of each has `size` characters."""
    return min(MOST, CHARACTERS // max(1, min(size, LONGEST)))


def _first(sql: Sql, number: int, of_rows: Conditions) -> int:
    """Return the time of the first reading of a source that has readings in a range."""
    chosen = f"SELECT requested FROM readings WHERE readings.source = ? AND {of_rows.rows} ORDER BY requested LIMIT 1"
    first: int = sql.rows(chosen, number, *of_rows.row_values)[0]["requested"]
    return first


def readings_of(
    sql: Sql, source: ChosenSource, data_filter: DataFilter, scope: DataScope, buckets: Buckets, most: int
) -> SourceReadings:
    """Return the readings of a source that are rows of the database."""
    later = conditions("readings", replace(data_filter, start=None), scope)
    return _readings(sql, source, conditions("readings", data_filter, scope), later, buckets, most)


def _readings(
    sql: Sql, source: ChosenSource, of_rows: Conditions, later: Conditions, buckets: Buckets, most: int
) -> SourceReadings:
    """Return the readings of a source that match `of_rows`; those that match `later` may be before the start, too."""
    number = source.number
    chosen, values = f"readings.source = ? AND {of_rows.rows}", (number, *of_rows.row_values)
    ordered = f"FROM readings WHERE {chosen} ORDER BY requested, number LIMIT ?"
    if not sql.rows(f"SELECT requested {ordered} OFFSET ?", *values, 1, most):  # the index alone answers that
        return SourceReadings(
            source.source, source.tags, False, _texts(sql.rows(f"SELECT requested, {_DATA} {ordered}", *values, most))
        )
    step = part_of(buckets, most)
    # Without the start, because SQLite uses only one lower bound to search an index, and may choose the wrong one.
    following = f"readings.source = ? AND {later.rows}"
    rows = sql.rows(
        f"""
        WITH RECURSIVE steps(moment) AS (
            SELECT * FROM (SELECT requested FROM readings WHERE {chosen} ORDER BY requested LIMIT 1) AS one
            UNION ALL
            SELECT (
                SELECT requested FROM readings
                WHERE {following} AND requested >= ? + ((steps.moment - ?) / ? + 1) * ? ORDER BY requested LIMIT 1
            ) FROM steps WHERE steps.moment IS NOT NULL
        )
        SELECT moment AS requested, (
            SELECT {_DATA} FROM readings WHERE readings.source = ? AND requested = moment ORDER BY number LIMIT 1
        ) AS data FROM steps WHERE moment IS NOT NULL ORDER BY moment
        """,
        *values,
        *(number, *later.row_values),
        *(buckets.first, buckets.first, step, step),
        number,
    )
    return SourceReadings(source.source, source.tags, True, _texts(rows))


def part_of(buckets: Buckets, most: int) -> int:
    """Return the length of equal parts of a bucket: at most PARTS, and `most` in all together."""
    most_parts = min(PARTS, max(1, most // buckets.count))
    parts = next(parts for parts in range(most_parts, 0, -1) if buckets.step % parts == 0)
    return buckets.step // parts


def _texts(rows: Sequence[Row]) -> tuple[tuple[int, str], ...]:
    return tuple((row["requested"], row["data"]) for row in rows if row["data"] is not None)
