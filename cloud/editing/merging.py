"""Two changes of one configuration made one, so that nothing that anybody did is lost. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from schema.report import join


class _Absent:
    """Stands for what is not there."""

    def __repr__(self) -> str:
        return "(none)"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Conflict:
    """Something that both have changed, differently. `merged` has mine. ABSENT stands for removed."""

    path: str
    theirs: Any
    mine: Any


@dataclass(frozen=True, slots=True)
class Merged:
    """`document` has the changes of both; where they are at odds, mine."""

    document: Any
    conflicts: tuple[Conflict, ...] = ()


def merged(base: Any, theirs: Any, mine: Any) -> Merged:
    """Both changes of `base` together. Entries of lists are told by their names, as far as they have such."""
    conflicts: list[Conflict] = []
    return Merged(_merge(base, theirs, mine, "", conflicts), tuple(conflicts))


def _merge(base: Any, theirs: Any, mine: Any, path: str, conflicts: list[Conflict]) -> Any:
    if same(theirs, mine) or same(base, theirs):
        return mine
    if same(base, mine):
        return theirs
    if isinstance(theirs, Mapping) and isinstance(mine, Mapping):
        return _objects(base if isinstance(base, Mapping) else {}, theirs, mine, path, conflicts)
    if isinstance(theirs, list) and isinstance(mine, list):
        named = [_by_name(one) for one in (base if isinstance(base, list) else [], theirs, mine)]
        old, other, own = named
        if old is not None and other is not None and own is not None:
            return list(_objects(old, other, own, path, conflicts).values())
    conflicts.append(Conflict(path, theirs, mine))
    return mine


def _objects(
    base: Mapping[str, Any], theirs: Mapping[str, Any], mine: Mapping[str, Any], path: str, conflicts: list[Conflict]
) -> dict[str, Any]:
    """Mine in its order, and behind it what they have added."""
    result = {}
    for key in (*mine, *(key for key in theirs if key not in mine)):
        old, other, own = base.get(key, ABSENT), theirs.get(key, ABSENT), mine.get(key, ABSENT)
        value = _merge(old, other, own, join(path, key), conflicts)
        if value is not ABSENT:
            result[key] = value
    return result


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """Entries by name, or by id; None if they cannot be told apart so."""
    found: dict[str, Any] = {}
    for one in items:
        name = one.get("name", one.get("id")) if isinstance(one, Mapping) else None
        if not isinstance(name, str) or name in found:
            return None
        found[name] = one
    return found


def same(one: Any, other: Any) -> bool:
    """Equality of JSON: true is not 1."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
