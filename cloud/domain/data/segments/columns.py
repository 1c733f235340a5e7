"""Conversion of readings to columns and back, exactly. Pure.

A field is a path in a reading, such as `readings.temperature`. A reading that its columns do not give back exactly,
such as one with a list, or with a text where others have a number, keeps its whole text as well.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

import msgspec

MAX_FIELDS: Final = 500  # of a segment; readings with others keep their text
MAX_DEPTH: Final = 8
KEYS: Final = ("source", "requested", "received", "synced", "number")
"""Columns of integers before the fields; times are stored times."""

WHOLE: Final = "data"
"""Column with the texts that the fields do not give back."""

_encode: Final = msgspec.json.Encoder(order="sorted").encode

Leaf = bool | float | str


class FieldKind(IntEnum):
    """Type of a field."""

    BOOL = 1
    NUMBER = 2
    TEXT = 3


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A reading with its KEYS and its text, as in the table `readings`."""

    source: int
    requested: int
    received: int
    synced: int
    number: int
    text: str


@dataclass(slots=True)
class Columns:
    """Readings as columns, ordered by source, time and number.

    `whole` has the texts that the fields do not give back.
    """

    keys: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in KEYS})
    kinds: dict[str, FieldKind] = field(default_factory=dict)
    fields: dict[str, list[Leaf | None]] = field(default_factory=dict)
    whole: list[str | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.whole)

    def rows(self) -> Iterator[SegmentRow]:
        """Yield the readings, each exactly as it was."""
        every_key = zip(*(self.keys[name] for name in KEYS), strict=True)
        for place, (text, keys) in enumerate(zip(self.whole, every_key, strict=True)):
            if text is None:
                leaves = {path: values[place] for path, values in self.fields.items() if values[place] is not None}
                text = _text(leaves)
            source, requested, received, synced, number = keys
            yield SegmentRow(source, requested, received, synced, number, text)


def columns_of(rows: Sequence[SegmentRow], allowed: Collection[str] | None = None) -> Columns:
    """Return readings as columns: with the most frequent fields, of the most frequent kind of each.

    With `allowed`, only these fields become columns.
    """
    ordered = sorted(rows, key=lambda row: (row.source, row.requested, row.number))
    every = [_leaves(row.text) for row in ordered]
    columns = Columns({name: [getattr(row, name) for row in ordered] for name in KEYS}, _kinds(every, allowed))
    columns.fields = {path: [] for path in columns.kinds}
    for row, leaves in zip(ordered, every, strict=True):
        fitting = {path: value for path, value in leaves.items() if columns.kinds.get(path) is _kind(value)}
        for path, values in columns.fields.items():
            values.append(fitting.get(path))
        columns.whole.append(None if _text(fitting) == row.text else row.text)
    return columns


def _kinds(every: Sequence[Mapping[str, Leaf]], allowed: Collection[str] | None) -> dict[str, FieldKind]:
    """Return the fields of a segment, sorted. Their names differ in more than case, which databases do not heed."""
    counts = Counter((path, _kind(value)) for leaves in every for path, value in leaves.items())
    kinds: dict[str, FieldKind] = {}
    taken = {*KEYS, WHOLE}
    for (path, kind), _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if path and path.casefold() not in taken and len(kinds) < MAX_FIELDS and (allowed is None or path in allowed):
            kinds[path] = kind
            taken.add(path.casefold())
    return dict(sorted(kinds.items()))


def _leaves(text: str) -> dict[str, Leaf]:
    """Return the texts, numbers and booleans of a reading by their paths."""
    leaves: dict[str, Leaf] = {}
    _add(leaves, "", json.loads(text), 0)
    return leaves


def _add(leaves: dict[str, Leaf], path: str, value: Any, depth: int) -> None:
    if isinstance(value, Mapping):
        for name, each in value.items() if depth < MAX_DEPTH else ():
            _add(leaves, f"{path}.{name}" if path else name, each, depth + 1)
    elif isinstance(value, bool | str) or (isinstance(value, float) and math.isfinite(value)):
        leaves[path] = value


def _text(leaves: Mapping[str, Leaf | None]) -> str:
    """Return the reading with these values, in the form in which readings are stored."""
    whole: dict[str, Any] = {}
    for path, value in leaves.items():
        names = path.split(".")
        inner = whole
        for name in names[:-1]:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                return ""
        inner[names[-1]] = value
    return _encode(whole).decode()


def _kind(value: Leaf) -> FieldKind:
    if isinstance(value, bool):
        return FieldKind.BOOL
    return FieldKind.TEXT if isinstance(value, str) else FieldKind.NUMBER
