"""Readings as a flat table with one column for each value, named by its path (`readings.position.lat`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any, Final

from cloud.domain.data.readings import ReadingRecord

MAX_COLUMNS: Final = 500  # value columns
OTHER_VALUES: Final = "other_values"
"""Column after MAX_COLUMNS value columns: the values of a reading without a column, as a JSON object by path."""
MAX_DEPTH: Final = 8


class ColumnKind(IntEnum):
    """Type of a column; a column of mixed types is TEXT."""

    BOOL = 1
    NUMBER = 2
    TEXT = 3


FIXED: Final = (
    "time_requested",
    "time_received",
    "organization_id",
    "location_id",
    "robot_id",
    "robot_name",
    "part_id",
    "part_name",
    "component_type",
    "component_name",
    "method_name",
    "tags",
)
"""Columns before the value columns: two times, then text."""

TIMES: Final = frozenset({"time_requested", "time_received"})

Cell = str | float | bool | datetime | None


def fixed(reading: ReadingRecord) -> tuple[datetime | str, ...]:
    """Return the cells of the FIXED columns; tags are separated by spaces."""
    source = reading.source
    return (
        reading.requested,
        reading.received,
        source.organization_id,
        source.location_id,
        source.machine_id,
        source.machine,
        source.part_id,
        source.part,
        source.component_type,
        source.component,
        source.method,
        " ".join(reading.tags),
    )


def flat(data: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, str | float | bool]:
    """Return each value by its path. Lists and deeply nested values become JSON; nulls are left out."""
    values: dict[str, str | float | bool] = {}
    for name, value in data.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and depth < MAX_DEPTH:
            values |= flat(value, f"{path}.", depth + 1)
        elif isinstance(value, bool | str | float):
            values[path] = value
        elif isinstance(value, int):
            values[path] = float(value)
        elif value is not None:
            values[path] = json.dumps(value, ensure_ascii=False)
    return values


def widen(columns: dict[str, ColumnKind], readings: Iterable[ReadingRecord]) -> None:
    """Add the columns of these readings to `columns`; a column of mixed types becomes text.

    Above MAX_COLUMNS, add OTHER_VALUES instead. That name is reserved: a value of this name has no column of its own.
    """
    for reading in readings:
        for path, value in flat(reading.data).items():
            kind = (
                ColumnKind.BOOL
                if isinstance(value, bool)
                else ColumnKind.NUMBER
                if isinstance(value, float)
                else ColumnKind.TEXT
            )
            column = columns.get(path)
            if path == OTHER_VALUES or (column is None and len(columns) >= MAX_COLUMNS):
                columns[OTHER_VALUES] = ColumnKind.TEXT
            elif column is None:
                columns[path] = kind
            elif column is not kind:
                columns[path] = ColumnKind.TEXT


def cells(reading: ReadingRecord, columns: Mapping[str, ColumnKind]) -> list[str | float | bool | None]:
    """Return the values of a reading in the order of the columns."""
    values = flat(reading.data)
    others = {path: value for path, value in values.items() if path not in columns or path == OTHER_VALUES}
    if others:
        values[OTHER_VALUES] = json.dumps(others, ensure_ascii=False)
    return [_converted(values.get(path), kind) for path, kind in columns.items()]


def _converted(value: str | float | bool | None, kind: ColumnKind) -> str | float | bool | None:
    if value is None or kind is not ColumnKind.TEXT or isinstance(value, str):
        return value
    return ("true" if value else "false") if isinstance(value, bool) else repr(value)
