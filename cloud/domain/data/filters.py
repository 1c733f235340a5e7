"""Filters for captured data, and the data that a caller may access, as SQL conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from cloud.store.sql import Value
from cloud.values.times import stored
from schema import ErrorKind, MachineError

MAX_VALUES: Final = 1000  # in one field of a filter


@dataclass(frozen=True, slots=True)
class DataScope:
    """Data that a caller may access.

    All data of `organizations`, `locations` and `machines`; and for `guests`, machines of other organizations, the data
    captured in the locations `shared`.
    """

    organizations: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    guests: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()  # location ids

    def __bool__(self) -> bool:
        return bool(self.organizations or self.locations or self.machines or (self.guests and self.shared))


@dataclass(frozen=True, slots=True)
class DataFilter:
    """Filter for data. All given fields must match; a field with several values matches any of them.

    Data must be captured from `start` on and before `end`.
    """

    organizations: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    machine: str = ""
    machine_name: str = ""
    part: str = ""
    part_name: str = ""
    component_type: str = ""
    component: str = ""
    method: str = ""
    mime: tuple[str, ...] = ()
    start: datetime | None = None
    end: datetime | None = None
    tags: tuple[str, ...] = ()
    tagged: bool | None = None  # with any tag, or without tags
    labels: tuple[str, ...] = ()  # labels of bounding boxes
    dataset: str = ""
    source: int | None = None  # number of the source, within the program
    parameters: str | None = None  # parameters of the method, in canonical form


Kind = Literal["files", "readings", "segments"]

EXACT: Final = {
    "machine": "machine_id",
    "machine_name": "machine",
    "part": "part_id",
    "part_name": "part",
    "component_type": "component_type",
    "component": "component",
    "method": "method",
}
"""Fields of DataFilter, and the columns of data_sources that must equal them."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """SQL conditions for sources and for rows, with their parameters."""

    sources: str
    source_values: tuple[Value, ...]
    rows: str
    row_values: tuple[Value, ...]

    def both(self) -> tuple[str, tuple[Value, ...]]:
        """Return the condition and parameters for rows joined with their sources."""
        return f"{self.sources} AND {self.rows}", self.source_values + self.row_values


def where(kind: Kind, data_filter: DataFilter, scope: DataScope) -> tuple[str, tuple[Value, ...]]:
    """Return condition and parameters for rows of a kind joined with `data_sources`.

    Segments match if they may have readings that do.
    """
    return conditions(kind, data_filter, scope).both()


def conditions(kind: Kind, data_filter: DataFilter, scope: DataScope) -> Conditions:
    """Return the same conditions as `where`, but separate for sources and rows."""
    sources, rows = _of_sources(data_filter, scope), _of_rows(kind, data_filter)
    return Conditions(sources.text, tuple(sources.values), rows.text, tuple(rows.values))


def _of_sources(data_filter: DataFilter, scope: DataScope) -> _Builder:
    builder = _Builder()
    builder.any_of(
        [("data_sources.organization_id", scope.organizations)],
        [("data_sources.location_id", scope.locations)],
        [("data_sources.machine_id", scope.machines)],
        [("data_sources.machine_id", scope.guests), ("data_sources.location_id", scope.shared)],
    )
    builder.one_of("data_sources.organization_id", data_filter.organizations)
    builder.one_of("data_sources.location_id", data_filter.locations)
    for field, column in EXACT.items():
        if value := getattr(data_filter, field):
            builder.add(f"data_sources.{column} = ?", value)
    if data_filter.source is not None:
        builder.add("data_sources.number = ?", data_filter.source)
    if data_filter.parameters is not None:
        builder.add("data_sources.parameters = ?", data_filter.parameters)
    return builder


def _of_rows(kind: Kind, data_filter: DataFilter) -> _Builder:
    builder = _Builder()
    first, last = ("segments.first", "segments.last") if kind == "segments" else (f"{kind}.requested",) * 2
    if data_filter.start is not None:
        builder.add(f"{last} >= ?", stored(data_filter.start))
    if data_filter.end is not None:
        builder.add(f"{first} < ?", stored(data_filter.end))
    table, column, key = _TAGS[kind]
    if data_filter.tagged is not None:
        word = "EXISTS" if data_filter.tagged else "NOT EXISTS"
        builder.add(f"{word} (SELECT 1 FROM {table} WHERE {table}.{column} = {key})")
    builder.inside(f"SELECT 1 FROM {table} WHERE {table}.{column} = {key} AND {table}.tag", data_filter.tags)
    if kind == "files":
        builder.one_of("files.mime", data_filter.mime)
        edges = "file_labels.x_min IS NOT NULL"
        builder.inside(
            f"SELECT 1 FROM file_labels WHERE file_labels.file_id = files.id AND {edges} AND file_labels.label",
            data_filter.labels,
        )
        if data_filter.dataset:
            builder.add(
                "EXISTS (SELECT 1 FROM dataset_files WHERE dataset_files.file_id = files.id AND dataset_id = ?)",
                data_filter.dataset,
            )
    elif data_filter.mime or data_filter.labels or data_filter.dataset:
        builder.add("1 = 0")  # readings have none of these
    return builder


_TAGS: Final = {
    "files": ("file_tags", "file_id", "files.id"),
    "readings": ("data_source_tags", "source", "readings.source"),
    "segments": ("data_source_tags", "source", "segments.source"),
}


class _Builder:
    """Builds a conjunction of conditions."""

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.values: list[Value] = []

    @property
    def text(self) -> str:
        return " AND ".join(self.conditions) or "1 = 1"

    def add(self, condition: str, *values: Value) -> None:
        self.conditions.append(condition)
        self.values += values

    def one_of(self, column: str, values: Sequence[str]) -> None:
        if values:
            self.add(f"{column} IN ({_marks(values)})", *values)

    def inside(self, query: str, values: Sequence[str]) -> None:
        if values:
            self.add(f"EXISTS ({query} IN ({_marks(values)}))", *values)

    def any_of(self, *choices: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Require one of the choices; a choice matches if each of its columns has one of its values."""
        complete = [choice for choice in choices if all(values for _, values in choice)]
        texts = [" AND ".join(f"{column} IN ({_marks(values)})" for column, values in choice) for choice in complete]
        values = [value for choice in complete for _, allowed in choice for value in allowed]
        self.add(f"({' OR '.join(texts)})" if texts else "1 = 0", *values)


def _marks(values: Sequence[str]) -> str:
    if len(values) > MAX_VALUES:
        raise MachineError(
            f"a field of the filter has {len(values)} values",
            kind=ErrorKind.INVALID,
            remedy=f"use at most {MAX_VALUES}",
        )
    return ", ".join("?" * len(values))
