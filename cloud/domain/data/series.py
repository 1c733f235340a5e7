"""Readings of one source over a range of time, for plots: all of them if they are few, else one of each interval.

The cost depends on what is returned, not on what is stored: each interval is found by the index of capture times.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from cloud.domain.data.filters import Conditions, DataFilter, Scope, conditions
from cloud.domain.data.pages import Page
from cloud.domain.data.readings import query
from cloud.domain.data.sources import Source
from cloud.store.sql import Row, Sql
from cloud.values.times import moment_of

MAX_SOURCES: Final = 12
MOST: Final = 12_000  # readings of all series together that are read completely: parsing them takes half a second
LONGEST: Final = 4096  # characters of the JSON of a reading: longer ones are left out
INTERVALS: Final = 600  # of a series that has more: one for each pixel of a plot on a phone
_MICROSECOND: Final = timedelta(microseconds=1)
_DATA: Final = f"CASE WHEN LENGTH(data) <= {LONGEST} THEN data END AS data"
_ORDERS: Final = ("ASC", "DESC")


@dataclass(frozen=True, slots=True)
class Series:
    """Readings of a source, oldest first, as times and JSON, without those longer than LONGEST.

    With a `step` above 0, they are the first reading of each interval of that length; intervals without readings are
    left out.
    """

    source: Source
    readings: tuple[tuple[datetime, str], ...]
    step: timedelta = timedelta()

    def samples(self) -> list[tuple[datetime, Mapping[str, Any]]]:
        """Return the readings parsed. Avoid this in transactions, which block others."""
        return [(moment, json.loads(text)) for moment, text in self.readings]


def series(sql: Sql, data_filter: DataFilter, scope: Scope, page: Page) -> list[Series]:
    """Return a series over the range of the filter for each source that has readings on a page, at most MAX_SOURCES."""
    sources = {each.source_number: each.source for each in query(sql, data_filter, scope, page)}
    chosen = list(sources.items())[:MAX_SOURCES]
    of_rows = conditions("readings", data_filter, scope)
    later = conditions("readings", replace(data_filter, start=None), scope)
    return [_series(sql, number, source, of_rows, later, MOST // len(chosen)) for number, source in chosen]


def _series(sql: Sql, number: int, source: Source, of_rows: Conditions, later: Conditions, most: int) -> Series:
    """Return a series of readings that match `of_rows`; those that match `later` may be before the start, too."""
    chosen, values = f"readings.source = ? AND {of_rows.rows}", (number, *of_rows.row_values)
    more = sql.row(f"SELECT requested FROM readings WHERE {chosen} ORDER BY requested LIMIT 1 OFFSET ?", *values, most)
    if more is None:
        rows = sql.rows(f"SELECT requested, {_DATA} FROM readings WHERE {chosen} ORDER BY requested, number", *values)
        return Series(source, _readings(rows))
    ends = [f"SELECT requested FROM readings WHERE {chosen} ORDER BY requested {order} LIMIT 1" for order in _ORDERS]
    first, last = (sql.rows(end, *values)[0]["requested"] for end in ends)
    step = (last - first) // INTERVALS + 1
    # Without the start, because SQLite uses only one lower bound to search an index, and may choose the wrong one.
    following = f"readings.source = ? AND {later.rows}"
    rows = sql.rows(
        f"""
        WITH RECURSIVE steps(moment) AS (
            SELECT * FROM ({ends[0]}) AS one
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
        first,
        first,
        step,
        step,
        number,
    )
    return Series(source, _readings(rows), step * _MICROSECOND)


def _readings(rows: Sequence[Row]) -> tuple[tuple[datetime, str], ...]:
    return tuple((moment_of(row["requested"]), row["data"]) for row in rows if row["data"] is not None)
