"""Pages of files and readings, ordered by capture time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cloud.domain.data.filters import Conditions, Kind
from cloud.domain.data.sources import chunks
from cloud.store.sql import Row, Sql, Value

PAGE: Final = 50  # the published default
MAX_PAGE: Final = 1000
FEW: Final = 32  # maximum number of sources read separately in index order; more are sorted by the database


@dataclass(frozen=True, slots=True)
class Page:
    """Start and size of a page; `after` is the position of the last row of the previous page."""

    after: tuple[int, int] | None = None  # requested, number
    limit: int = PAGE
    descending: bool = False


def rows_of(sql: Sql, kind: Kind, select: str, conditions: Conditions, page: Page) -> list[Row]:
    """Return the rows of a page; `select` joins `kind` with its sources and has the column `number`.

    The row numbers of the page are determined from indexes first, so that whole rows are read only for this page.
    """
    order = "DESC" if page.descending else "ASC"
    limit = max(1, min(page.limit, MAX_PAGE))
    position, position_values = _after_position(kind, page)
    sources = [
        row["number"]
        for row in sql.rows(
            f"SELECT number FROM data_sources WHERE {conditions.sources} LIMIT ?", *conditions.source_values, FEW + 1
        )
    ]
    columns = f"SELECT {kind}.requested AS requested, {kind}.number AS number FROM {kind}"
    values: list[Value] = []
    if len(sources) > FEW:
        text, condition_values = conditions.both()
        numbers_query = f"{columns} JOIN data_sources ON data_sources.number = {kind}.source WHERE {text}{position}"
        values = [*condition_values, *position_values]
    else:
        ordered = f"ORDER BY {kind}.requested {order}, {kind}.number {order} LIMIT ?"
        source_query = (
            f"SELECT * FROM ({columns} WHERE {kind}.source = ? AND {conditions.rows}{position} {ordered}) AS one"
        )
        numbers_query = " UNION ALL ".join([source_query] * len(sources))
        for source in sources:
            values += [source, *conditions.row_values, *position_values, limit]
    if not sources:
        return []
    page_order = f"ORDER BY requested {order}, number {order} LIMIT ?"
    numbers = [
        row["number"] for row in sql.rows(f"SELECT * FROM ({numbers_query}) AS found {page_order}", *values, limit)
    ]
    rows = {
        row["number"]: row
        for chunk in chunks(numbers)
        for row in sql.rows(f"{select} WHERE {kind}.number IN ({', '.join('?' * len(chunk))})", *chunk)
    }
    return [rows[number] for number in numbers]


def _after_position(kind: Kind, page: Page) -> tuple[str, list[Value]]:
    """Return condition and parameters for rows after the start position of the page."""
    if page.after is None:
        return "", []
    sign = "<" if page.descending else ">"
    requested, number = page.after
    return (
        f" AND ({kind}.requested {sign} ? OR ({kind}.requested = ? AND {kind}.number {sign} ?))",
        [requested, requested, number],
    )
