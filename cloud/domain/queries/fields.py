"""Fields of an organization's readings, for completion: columns of its Parquet files, and those of newest readings.

The cost does not depend on how much is stored: a few sources are looked at, and one reading of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from cloud.domain.data.segments.catalog import columns_of as catalog
from cloud.domain.data.segments.columns import KEYS, MAX_DEPTH, WHOLE
from cloud.domain.queries.view import JSON, columns_of
from cloud.store.sql import Sql

MAX_FIELDS: Final = 500
SOURCES: Final = 50  # the ones that began last
LONGEST: Final = 4096  # characters of a reading; longer ones are not looked at
_TYPES: Final[Mapping[type, str]] = {bool: "BOOLEAN", int: "DOUBLE", float: "DOUBLE", str: "VARCHAR", list: JSON}


def newest(sql: Sql, owner: str) -> list[tuple[str, str]]:
    """Return paths of fields, such as `readings.celsius`, and their types in queries, ordered by path.

    A name with a dot or a quotation mark is left out: it would not be the same path in SQL.
    """
    fields: dict[str, str] = {}
    keys = (*KEYS, WHOLE)
    for column in columns_of(each for each in catalog(sql, owner) if each[1] not in keys):
        _add(fields, column.path, column.type)
    rows = sql.rows(
        "SELECT number FROM data_sources WHERE organization_id = ? ORDER BY number DESC LIMIT ?", owner, SOURCES
    )
    for row in rows:
        reading = sql.row(
            f"SELECT CASE WHEN LENGTH(data) <= {LONGEST} THEN data END AS data FROM readings "
            "WHERE source = ? ORDER BY requested DESC, number DESC LIMIT 1",
            row["number"],
        )
        if reading is not None and reading["data"] is not None:
            for path, type_ in _leaves((), msgspec.json.decode(reading["data"])):
                _add(fields, path, type_)
    return sorted(fields.items())


def _add(fields: dict[str, str], path: tuple[str, ...], type_: str) -> None:
    if len(fields) < MAX_FIELDS and all(name and not {".", '"'} & set(name) for name in path):
        fields.setdefault(".".join(path), type_)


def _leaves(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict) and len(path) < MAX_DEPTH:
        for name, each in value.items():
            yield from _leaves((*path, name), each)
    elif path and type(value) in _TYPES:
        yield path, _TYPES[type(value)]
