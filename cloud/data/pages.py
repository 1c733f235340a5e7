"""Pages of files and readings in order of the time when they were captured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cloud.data.filters import Conditions, Kind
from cloud.data.sources import chunks
from cloud.store.sql import Row, Sql, Value

PAGE: Final = 50  # the published default
MAX_PAGE: Final = 1000
FEW: Final = 32  # sources that are read one by one, each in the order of its index; more are sorted by the database


@dataclass(frozen=True, slots=True)
class Page:
    """Where a page begins and how far it goes; `after` is the place of the last one seen."""

    after: tuple[int, int] | None = None  # requested, number
    limit: int = PAGE
    descending: bool = False


def rows_of(sql: Sql, kind: Kind, select: str, wanted: Conditions, page: Page) -> list[Row]:
    """The rows of a page; `select` joins `kind` with its sources and has the column `number`.

    The database looks for the numbers of the page first, in its indexes, and reads whole rows of the page alone.
    """
    order = "DESC" if page.descending else "ASC"
    limit = max(1, min(page.limit, MAX_PAGE))
    rest, more = _rest(kind, page)
    sources = [
        row["number"]
        for row in sql.rows(
            f"SELECT number FROM data_sources WHERE {wanted.sources} LIMIT ?", *wanted.source_values, FEW + 1
        )
    ]
    columns = f"SELECT {kind}.requested AS requested, {kind}.number AS number FROM {kind}"
    values: list[Value] = []
    if len(sources) > FEW:
        text, given = wanted.both()
        found = f"{columns} JOIN data_sources ON data_sources.number = {kind}.source WHERE {text}{rest}"
        values = [*given, *more]
    else:
        ordered = f"ORDER BY {kind}.requested {order}, {kind}.number {order} LIMIT ?"
        one = f"SELECT * FROM ({columns} WHERE {kind}.source = ? AND {wanted.rows}{rest} {ordered}) AS one"
        found = " UNION ALL ".join([one] * len(sources))
        for source in sources:
            values += [source, *wanted.row_values, *more, limit]
    if not sources:
        return []
    place = f"ORDER BY requested {order}, number {order} LIMIT ?"
    numbers = [row["number"] for row in sql.rows(f"SELECT * FROM ({found}) AS found {place}", *values, limit)]
    rows = {
        row["number"]: row
        for some in chunks(numbers)
        for row in sql.rows(f"{select} WHERE {kind}.number IN ({', '.join('?' * len(some))})", *some)
    }
    return [rows[number] for number in numbers]


def _rest(kind: Kind, page: Page) -> tuple[str, list[Value]]:
    """The condition that a row is behind the place where the page begins, and its parameters."""
    if page.after is None:
        return "", []
    sign = "<" if page.descending else ">"
    requested, number = page.after
    return (
        f" AND ({kind}.requested {sign} ? OR ({kind}.requested = ? AND {kind}.number {sign} ?))",
        [requested, requested, number],
    )
