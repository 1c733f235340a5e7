"""Pages of files and readings in order of the time when they were captured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cloud.data.filters import Conditions, Kind
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
    """The rows of a page; `select` joins `kind` with its sources and has the columns `requested` and `number`."""
    rest, more, limit = _rest(kind, page)
    numbers = [
        row["number"]
        for row in sql.rows(
            f"SELECT number FROM data_sources WHERE {wanted.sources} LIMIT ?", *wanted.source_values, FEW + 1
        )
    ]
    if len(numbers) > FEW:
        text, values = wanted.both()
        return sql.rows(f"{select} WHERE {text}{rest}", *values, *more)
    found: list[Row] = []
    for number in numbers:
        found += sql.rows(
            f"{select} WHERE {kind}.source = ? AND {wanted.rows}{rest}", number, *wanted.row_values, *more
        )
    if len(numbers) > 1:
        found.sort(key=lambda row: (row["requested"], row["number"]), reverse=page.descending)
    return found[:limit]


def _rest(kind: Kind, page: Page) -> tuple[str, list[Value], int]:
    """What stands behind the conditions, its parameters, and the number of rows."""
    sign, order = ("<", "DESC") if page.descending else (">", "ASC")
    limit = max(1, min(page.limit, MAX_PAGE))
    values: list[Value] = []
    text = ""
    if page.after is not None:
        requested, number = page.after
        text = f" AND ({kind}.requested {sign} ? OR ({kind}.requested = ? AND {kind}.number {sign} ?))"
        values = [requested, requested, number]
    return f"{text} ORDER BY {kind}.requested {order}, {kind}.number {order} LIMIT ?", [*values, limit], limit
