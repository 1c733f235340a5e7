"""Readings as a flat table with one column for each value, named by its path (`readings.position.lat`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any, Final

from cloud.domain.data.readings import ReadingRecord

MAX_COLUMNS: Final = 500  # value columns; further values are left out
MAX_DEPTH: Final = 8


class Kind(IntEnum):
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


def fixed(one: ReadingRecord) -> tuple[datetime | str, ...]:
    """Return the cells of the FIXED columns; tags are separated by spaces."""
    source = one.source
    return (
        one.requested,
        one.received,
        source.organization_id,
        source.location_id,
        source.machine_id,
        source.machine,
        source.part_id,
        source.part,
        source.component_type,
        source.component,
        source.method,
        " ".join(one.tags),
    )


def flat(data: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, str | float | bool]:
    """Return each value by its path. Lists and deeply nested values become JSON; nulls are left out."""
    found: dict[str, str | float | bool] = {}
    for name, value in data.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and depth < MAX_DEPTH:
            found |= flat(value, f"{path}.", depth + 1)
        elif isinstance(value, bool | str | float):
            found[path] = value
        elif isinstance(value, int):
            found[path] = float(value)
        elif value is not None:
            found[path] = json.dumps(value, ensure_ascii=False)
    return found


def widen(columns: dict[str, Kind], readings: Iterable[ReadingRecord]) -> None:
    """Add the columns of these readings to `columns`; a column of mixed types becomes text."""
    for one in readings:
        for path, value in flat(one.data).items():
            kind = Kind.BOOL if isinstance(value, bool) else Kind.NUMBER if isinstance(value, float) else Kind.TEXT
            known = columns.get(path)
            if known is None and len(columns) < MAX_COLUMNS:
                columns[path] = kind
            elif known is not None and known is not kind:
                columns[path] = Kind.TEXT


def cells(one: ReadingRecord, columns: Mapping[str, Kind]) -> list[str | float | bool | None]:
    """Return the values of a reading in the order of the columns."""
    values = flat(one.data)
    return [_as(values.get(path), kind) for path, kind in columns.items()]


def numbers(readings: Iterable[tuple[datetime, Mapping[str, Any]]]) -> dict[str, list[tuple[datetime, float]]]:
    """Return, for plots, each path with numbers, and their times."""
    found: dict[str, list[tuple[datetime, float]]] = {}
    for moment, data in readings:
        for path, value in flat(data).items():
            if isinstance(value, float):
                found.setdefault(path, []).append((moment, value))
    return found


def _as(value: str | float | bool | None, kind: Kind) -> str | float | bool | None:
    if value is None or kind is not Kind.TEXT or isinstance(value, str):
        return value
    return ("true" if value else "false") if isinstance(value, bool) else repr(value)
