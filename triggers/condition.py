"""Conditions of triggers: an operator, and a value with the structure of the reading. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from schema.decoding.report import shown
from schema.document.section import Section
from schema.errors import ConfigError
from triggers.regex import Pattern, PatternError

ORDER: Final = frozenset({"lt", "gt", "lte", "gte"})
DEPTH: Final = 32  # names in a path, and levels of compared objects; readings are nested far less


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of one field of a reading with a value. An empty path is the reading itself."""

    path: tuple[str, ...]
    right: Any


class Eval(Section, frozen=True, kw_only=True):
    """Condition on a reading."""

    operator: Literal["lt", "gt", "lte", "gte", "eq", "neq", "regex"]
    """Less, greater, less or equal, greater or equal, equal, not equal, or matched by a regular expression."""
    value: Any
    """Value to compare the field with, in the same objects as in the reading or under a dotted path: `{"a.b": 1}`."""

    def __post_init__(self) -> None:
        if _deeper(self.value, DEPTH):
            raise ConfigError("value", f"is nested more than {DEPTH} levels deep", remedy="write the path with dots")
        for one in comparisons(self):
            where = ".".join(("value", *one.path))
            if reason := _unusable(self.operator, one):
                raise ConfigError(where, reason, value=one.right, remedy=_REMEDY[self.operator])
            if self.operator == "regex":
                try:
                    Pattern(one.right)
                except PatternError as error:
                    raise ConfigError(where, str(error), value=one.right, remedy="simplify the expression") from None


def comparisons(wanted: Eval) -> tuple[Comparison, ...]:
    """Return the comparisons of an eval, all of which must hold.

    Objects with one field and names with dots form a path. Several fields at the top level are separate comparisons.
    Below it, they are compared as one object by `eq` and `neq`, and separately by other operators.
    """
    return tuple(_descend((), wanted.value, wanted.operator))


def _descend(path: tuple[str, ...], value: Any, operator: str) -> Iterator[Comparison]:
    whole = path and len(value) > 1 and operator in {"eq", "neq"} if isinstance(value, Mapping) else True
    if whole or not value or len(path) > DEPTH:
        yield Comparison(path, value)
        return
    for key, item in value.items():
        yield from _descend((*path, *str(key).split(".")), item, operator)


def _deeper(value: Any, levels: int) -> bool:
    """Return True if objects and lists are nested more than `levels` deep."""
    here = [value]
    for _ in range(levels + 1):
        inner = (one.values() if isinstance(one, Mapping) else one for one in here if isinstance(one, _NESTING))
        here = [item for items in inner for item in items]
    return any(isinstance(one, _NESTING) for one in here)


_NESTING: Final = (Mapping, list, tuple)


def _unusable(operator: str, one: Comparison) -> str:
    if len(one.path) > DEPTH:
        return f"more than {DEPTH} names deep"
    if not all(one.path):
        return "a name in the path is empty"
    right = one.right
    if right is None:
        return "null is compared with, which nothing equals"
    if operator == "regex" and not isinstance(right, str):
        return f"{shown(right, one.path[-1] if one.path else '')} is no regular expression"
    if operator in ORDER and (isinstance(right, bool) or not isinstance(right, (int, float, str))):
        return f"{shown(right, one.path[-1] if one.path else '')} has no order"
    if isinstance(right, Mapping) and not right and not one.path:
        return "names no field"
    return ""


_REMEDY: Final = {
    "lt": 'write a number or a string: {"field": 10}',
    "gt": 'write a number or a string: {"field": 10}',
    "lte": 'write a number or a string: {"field": 10}',
    "gte": 'write a number or a string: {"field": 10}',
    "eq": 'write what the field is to be: {"field": true}',
    "neq": 'write what the field is not to be: {"field": "off"}',
    "regex": 'write a string: {"field": "^err"}',
}
