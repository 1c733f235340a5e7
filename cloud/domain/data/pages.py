"""Pages of files and readings, ordered by capture time.

The cost of a page depends on its length and on the number of sources, and not on how much these sources have stored:
the positions of its rows are merged from the indexes of the sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from cloud.domain.data.filters import Conditions, DataFilter, DataScope, Kind, conditions
from cloud.domain.data.sources import chunks
from cloud.store.sql import Row, Sql, Value
from cloud.values.times import stored

PAGE: Final = 50  # the published default
MAX_PAGE: Final = 1000
FEW: Final = 2  # positions of a source that are read at first, if there are many sources

Position = tuple[int, int]
"""Place of a row in the order of pages: when it was captured (`requested`), and its number."""
EARLIEST: Final[Position] = (-(2**62), 0)  # before every row


@dataclass(frozen=True, slots=True)
class Page:
    """Start and size of a page; `after` is the position of the last row of the previous page."""

    after: Position | None = None
    limit: int = PAGE
    descending: bool = False

    @property
    def rows(self) -> int:
        """Number of rows, within MAX_PAGE."""
        return max(1, min(self.limit, MAX_PAGE))


def rows_of(sql: Sql, kind: Kind, select: str, data_filter: DataFilter, scope: DataScope, page: Page) -> list[Row]:
    """Return the rows of a page; `select` joins `kind` with its sources and has the column `number`."""
    numbers = [number for _, number in _positions(sql, kind, data_filter, scope, page)]
    rows = {
        row["number"]: row
        for chunk in chunks(numbers)
        for row in sql.rows(f"{select} WHERE {kind}.number IN ({', '.join('?' * len(chunk))})", *chunk)
    }
    return [rows[number] for number in numbers]


def _positions(sql: Sql, kind: Kind, data_filter: DataFilter, scope: DataScope, page: Page) -> Sequence[Position]:
    """Return the positions of the rows of a page, in order.

    A few positions are read of each source, then more of those sources whose last one is still before the page's end.
    """
    matching = conditions(kind, _beyond(data_filter, page), scope)
    unread: dict[int, Position | None] = dict.fromkeys(_first_sources(sql, kind, matching, page), page.after)
    positions: list[Position] = []
    each = min(page.rows, max(FEW, 2 * page.rows // max(1, len(unread))))
    while unread:
        for source, last in unread.items():
            following = _next_positions(sql, kind, matching, source, last, each, page)
            positions += following
            unread[source] = following[-1] if len(following) == each else None
        positions.sort(reverse=page.descending)
        del positions[page.rows :]
        unread = {
            source: last
            for source, last in unread.items()
            if last is not None and (len(positions) < page.rows or _precedes(last, positions[-1], page))
        }
        each = min(page.rows, 4 * each)
    return positions


def _beyond(data_filter: DataFilter, page: Page) -> DataFilter:
    """Return the filter without a bound of time that the start position implies.

    SQLite uses only one bound to search an index, and may choose the one that is further away.
    """
    if page.after is None:
        return data_filter
    if page.descending:
        implied = data_filter.end is not None and page.after[0] < stored(data_filter.end)
        return replace(data_filter, end=None) if implied else data_filter
    implied = data_filter.start is not None and page.after[0] >= stored(data_filter.start)
    return replace(data_filter, start=None) if implied else data_filter


def _first_sources(sql: Sql, kind: Kind, matching: Conditions, page: Page) -> list[int]:
    """Return the sources that rows of a page can come from: those whose own first rows come first."""
    order = _order(page)
    after, values = _after(kind, page.after, page)
    first = f"""
        SELECT {kind}.requested FROM {kind} WHERE {kind}.source = data_sources.number AND {matching.rows}{after}
        ORDER BY {kind}.requested {order}, {kind}.number {order} LIMIT 1
    """
    rows = sql.rows(
        f"SELECT data_sources.number AS number, ({first}) AS first FROM data_sources WHERE {matching.sources}",
        *matching.row_values,
        *values,
        *matching.source_values,
    )
    times = sorted((row["first"] for row in rows if row["first"] is not None), reverse=page.descending)
    if not times:
        return []
    last = times[: page.rows][-1]  # several sources may have a row at this time
    return [
        row["number"]
        for row in rows
        if row["first"] is not None and (row["first"] >= last if page.descending else row["first"] <= last)
    ]


def _next_positions(
    sql: Sql, kind: Kind, matching: Conditions, source: int, last: Position | None, each: int, page: Page
) -> list[Position]:
    """Return the positions of a source after `last`, at most `each`."""
    order = _order(page)
    after, values = _after(kind, last, page)
    rows = sql.rows(
        f"""
        SELECT requested, number FROM {kind} WHERE {kind}.source = ? AND {matching.rows}{after}
        ORDER BY {kind}.requested {order}, {kind}.number {order} LIMIT ?
        """,
        source,
        *matching.row_values,
        *values,
        each,
    )
    return [(row["requested"], row["number"]) for row in rows]


def _after(kind: Kind, position: Position | None, page: Page) -> tuple[str, tuple[Value, ...]]:
    """Return condition and parameters for rows after a position."""
    if position is None:
        return "", ()
    return f" AND ({kind}.requested, {kind}.number) {'<' if page.descending else '>'} (?, ?)", position


def _order(page: Page) -> str:
    return "DESC" if page.descending else "ASC"


def _precedes(position: Position, other: Position, page: Page) -> bool:
    return position > other if page.descending else position < other
