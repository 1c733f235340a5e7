"""Sources of captured data: a method of a component of a part, with the names at the time of arrival."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final

from cloud.domain.machines.machines import part
from cloud.store.sql import Sql, Value
from schema import ErrorKind, MachineError
from schema.data import MAX_LABEL

MAX_TAGS: Final = 100  # tags of one upload
MAX_TEXT: Final = MAX_LABEL  # characters in a tag, a component's name or a method


@dataclass(frozen=True, slots=True)
class DataSource:
    """One source of data. `component_type` is the last segment of an API; `parameters` is JSON."""

    organization_id: str
    location_id: str
    machine_id: str
    machine: str
    part_id: str
    part: str
    component_type: str = ""
    component: str = ""
    method: str = ""
    parameters: str = "{}"


COLUMNS: Final = (
    "organization_id, location_id, machine_id, machine, part_id, part, component_type, component, method, parameters"
)


_values: Final[Callable[[DataSource], tuple[str, ...]]] = attrgetter(*COLUMNS.split(", "))
"""Function that returns the columns of a source: `astuple` copies each deeply, which took a tenth of an upload."""


def source_of(
    sql: Sql, subject: str, component_type: str, component: str, method: str, parameters: Mapping[str, Any]
) -> DataSource:
    """Return the source for data that a part captures now; NOT_FOUND for an unknown part."""
    record = part(sql, subject)
    return DataSource(
        organization_id=record.organization_id,
        location_id=record.location_id,
        machine_id=record.machine_id,
        machine=record.machine,
        part_id=record.id,
        part=record.name,
        component_type=usable(_last_segment(component_type)),
        component=usable(component),
        method=usable(method),
        parameters=canonical(parameters),
    )


def number_of(sql: Sql, source: DataSource, tags: Iterable[str] = ()) -> int:
    """Return the number of a source with these tags; store the source if it is new."""
    return numbers_of(sql, [(source, tags)])[0]


def numbers_of(sql: Sql, tagged: Sequence[tuple[DataSource, Iterable[str]]]) -> list[int]:
    """Return the numbers of sources with their tags; store those that are new."""
    keys = [_key(source, tags) for source, tags in tagged]
    numbers: dict[str, int] = {}
    for chunk in chunks(list(dict.fromkeys(keys))):
        marks = ", ".join("?" * len(chunk))
        for row in sql.rows(f"SELECT key, number FROM data_sources WHERE key IN ({marks})", *chunk):
            numbers[row["key"]] = row["number"]
    for key, (source, tags) in zip(keys, tagged, strict=True):
        if key not in numbers:
            numbers[key] = _added(sql, key, source, tags)
    return [numbers[key] for key in keys]


def _key(source: DataSource, tags: Iterable[str]) -> str:
    return sha256(json.dumps([_values(source), sorted(set(tags))]).encode()).hexdigest()


def _added(sql: Sql, key: str, source: DataSource, tags: Iterable[str]) -> int:
    """Store a source; return its number."""
    values: tuple[Value, ...] = _values(source)
    row = sql.row(
        f"""
        INSERT INTO data_sources (key, {COLUMNS}) VALUES (?{", ?" * len(values)})
        ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING number
        """,
        key,
        *values,
    )
    assert row is not None
    number: int = row["number"]
    sql.many(
        "INSERT INTO data_source_tags (source, tag) VALUES (?, ?) ON CONFLICT (source, tag) DO NOTHING",
        [(number, tag) for tag in sorted(set(tags))],
    )
    return number


def of_organization(sql: Sql, owner: str) -> list[int]:
    """Return the numbers of all sources of an organization."""
    return [row["number"] for row in sql.rows("SELECT number FROM data_sources WHERE organization_id = ?", owner)]


def methods_of(sql: Sql, part_id: str, limit: int) -> list[str]:
    """Return the methods of components from which a part has captured readings or files, as triggers name them."""
    rows = sql.rows(
        "SELECT DISTINCT component_type, component, method FROM data_sources WHERE part_id = ? AND component <> '' "
        "AND method <> '' ORDER BY component_type, component, method LIMIT ?",
        part_id,
        limit,
    )
    return [f"{row['component_type']}:{row['component']}:{row['method']}" for row in rows]


def by_numbers(sql: Sql, numbers: Iterable[int]) -> dict[int, DataSource]:
    """Return sources by their numbers."""
    return {
        row["number"]: read(row)
        for chunk in chunks(sorted(set(numbers)))
        for row in sql.rows(
            f"SELECT number, {COLUMNS} FROM data_sources WHERE number IN ({', '.join('?' * len(chunk))})", *chunk
        )
    }


def read(row: Mapping[str, Any]) -> DataSource:
    """Return the source in the columns COLUMNS of a row."""
    return DataSource(*(row[name] for name in COLUMNS.split(", ")))


def tags_of(sql: Sql, numbers: Iterable[int]) -> dict[int, list[str]]:
    """Return the sorted tags of the readings of each source."""
    source_numbers = list(numbers)
    tags: dict[int, list[str]] = {number: [] for number in source_numbers}
    for chunk in chunks(source_numbers):
        marks = ", ".join("?" * len(chunk))
        for row in sql.rows(
            f"SELECT source, tag FROM data_source_tags WHERE source IN ({marks}) ORDER BY source, tag", *chunk
        ):
            tags[row["source"]].append(row["tag"])
    return tags


def last_segment(component_type: str) -> str:
    """Return the last segment, so that `rdk:component:sensor` and `sensor` are the same type."""
    return checked(_last_segment(component_type), "the component's type")


def _last_segment(component_type: str) -> str:
    return component_type.rpartition(":")[2]


def canonical(parameters: Mapping[str, Any]) -> str:
    """Return the canonical JSON text of a method's parameters, for comparison."""
    return json.dumps(parameters, sort_keys=True, default=str)


def checked_tags(tags: Iterable[str]) -> list[str]:
    """Return sorted tags without duplicates; INVALID for an empty or too long tag, or too many tags."""
    sorted_tags = sorted({checked(tag.strip(), "a tag") for tag in tags})
    if "" in sorted_tags:
        raise MachineError("a tag is empty", kind=ErrorKind.INVALID, remedy="leave it out")
    if len(sorted_tags) > MAX_TAGS:
        raise MachineError(
            f"{len(sorted_tags)} tags in one call", kind=ErrorKind.INVALID, remedy=f"use at most {MAX_TAGS}"
        )
    return sorted_tags


def checked(text: str, what: str) -> str:
    """Return `text`; INVALID if it is too long or contains NUL."""
    if len(text) > MAX_TEXT or "\0" in text:
        raise MachineError(
            f"{what} is not valid: {text[:40]!r}",
            kind=ErrorKind.INVALID,
            remedy=f"use at most {MAX_TEXT} characters, without NUL",
        )
    return text


def usable_tags(tags: Iterable[str]) -> list[str]:
    """Return sorted tags of an upload, without those that cannot be stored: they must not cost the data."""
    return sorted({text for tag in tags if (text := usable(tag.strip()))})[:MAX_TAGS]


def usable(text: str) -> str:
    """Return the part of a text of an upload that can be stored: at most MAX_TEXT characters, without NUL."""
    return text.replace("\0", "")[:MAX_TEXT]


def chunks(values: list[Any], size: int = 500) -> Iterable[list[Any]]:
    """Split `values` into lists that are short enough for the parameters of a statement."""
    return (values[start : start + size] for start in range(0, len(values), size))
