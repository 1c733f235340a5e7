"""Three-way merge of two changes of a configuration, without losing either change. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from schema.decoding import join


class _Absent:
    """Marker for a missing value."""

    def __repr__(self) -> str:
        return "(none)"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """A value that both sides changed differently. `Merged.document` has `mine`. ABSENT means removed."""

    path: str
    theirs: Any
    mine: Any


@dataclass(frozen=True, slots=True)
class Merged:
    """Result of a merge. `document` has both changes; in case of conflict, mine."""

    document: Any
    conflicts: tuple[MergeConflict, ...] = ()


def merged(base: Any, theirs: Any, mine: Any) -> Merged:
    """Merge two changes of `base`. List entries are matched by name or id where all of them have one."""
    conflicts: list[MergeConflict] = []
    return Merged(_merge(base, theirs, mine, "", conflicts), tuple(conflicts))


def _merge(base: Any, theirs: Any, mine: Any, path: str, conflicts: list[MergeConflict]) -> Any:
    if same(theirs, mine) or same(base, theirs):
        return mine
    if same(base, mine):
        return theirs
    if isinstance(theirs, Mapping) and isinstance(mine, Mapping):
        return _objects(base if isinstance(base, Mapping) else {}, theirs, mine, path, conflicts)
    if isinstance(theirs, list) and isinstance(mine, list):
        by_name = [_by_name(entries) for entries in (base if isinstance(base, list) else [], theirs, mine)]
        base_entries, their_entries, my_entries = by_name
        if base_entries is not None and their_entries is not None and my_entries is not None:
            return list(_objects(base_entries, their_entries, my_entries, path, conflicts).values())
    conflicts.append(MergeConflict(path, theirs, mine))
    return mine


def _objects(
    base: Mapping[str, Any],
    theirs: Mapping[str, Any],
    mine: Mapping[str, Any],
    path: str,
    conflicts: list[MergeConflict],
) -> dict[str, Any]:
    """Merge two objects: the keys of `mine` in their order, then the keys that only `theirs` has."""
    result = {}
    for key in (*mine, *(key for key in theirs if key not in mine)):
        base_value, their_value, my_value = base.get(key, ABSENT), theirs.get(key, ABSENT), mine.get(key, ABSENT)
        value = _merge(base_value, their_value, my_value, join(path, key), conflicts)
        if value is not ABSENT:
            result[key] = value
    return result


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """Return the entries by name or id; None if any entry lacks one or it is not unique."""
    by_name: dict[str, Any] = {}
    for item in items:
        name = item.get("name", item.get("id")) if isinstance(item, Mapping) else None
        if not isinstance(name, str) or name in by_name:
            return None
        by_name[name] = item
    return by_name


def same(left: Any, right: Any) -> bool:
    """Compare JSON values for equality, where true differs from 1."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
