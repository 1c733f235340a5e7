"""Merging of documents: lists are joined, with entries replaced by name, and objects are merged. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any


def merge(*documents: Mapping[str, Any]) -> dict[str, Any]:
    """Merge documents; later ones take precedence. The time is proportional to the total size."""
    values: dict[str, list[Any]] = {}
    for document in documents:
        for key, value in document.items():
            values.setdefault(key, []).append(value)
    return {key: _merged(key_values) for key, key_values in values.items()}


def name_of(entry: Any) -> str | None:
    """Return the name of a list entry; None if it has none."""
    name = entry.get("name") if isinstance(entry, Mapping) else None
    return name if isinstance(name, str) else None


def _merged(values: Sequence[Any]) -> Any:
    """Merge the values of one key: the last one, with those before it as long as all are objects, or all are lists."""
    kind = next((container_type for container_type in (Mapping, list) if isinstance(values[-1], container_type)), None)
    if kind is None:
        return values[-1]
    run = list(takewhile(lambda value: isinstance(value, kind), reversed(values)))[::-1]
    if len(run) == 1:
        return run[0]
    return _joined(run) if kind is list else merge(*run)


def _joined(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """Concatenate lists, without entries whose name occurs in a later list."""
    later = set[str]()
    remaining: list[list[Any]] = []
    for entries in reversed(lists):
        names = [(name_of(entry), entry) for entry in entries]
        remaining.append([entry for name, entry in names if name not in later])
        later.update(name for name, _ in names if name is not None)
    return [entry for entries in reversed(remaining) for entry in entries]
