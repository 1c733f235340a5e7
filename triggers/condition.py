"""Conditions of triggers: an operator, and a value with the structure of the reading. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from schema.document.section import Section
from schema.errors import ConfigError
from triggers.operators import OPERATORS, Operator, OperatorName, Problem

DEPTH: Final = 32  # names in a path, and levels of compared objects; readings are nested far less


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of one field of a reading with a value. An empty path is the reading itself."""

    path: tuple[str, ...]
    right: Any


class Eval(Section, frozen=True, kw_only=True):
    """Condition on a reading."""

    operator: OperatorName
    """Less, greater, less or equal, greater or equal, equal, not equal, or matched by a regular expression."""
    value: Any
    """Value to compare the field with, in the same objects as in the reading or under a dotted path: `{"a.b": 1}`."""

    def __post_init__(self) -> None:
        if _deeper(self.value, DEPTH):
            raise ConfigError("value", f"is nested more than {DEPTH} levels deep", remedy="write the path with dots")
        operator = OPERATORS[self.operator]
        for one in comparisons(self):
            where = ".".join(("value", *one.path))
            if problem := _problem(operator, one):
                raise ConfigError(where, problem[0], value=one.right, remedy=problem[1] or operator.usage)


def comparisons(wanted: Eval) -> tuple[Comparison, ...]:
    """Return the comparisons of an eval, all of which must hold.

    Objects with one field and names with dots form a path. Several fields at the top level are separate comparisons.
    Below it, they are compared as one object by `eq` and `neq`, and separately by other operators.
    """
    return tuple(_descend((), wanted.value, whole=OPERATORS[wanted.operator].whole))


def _descend(path: tuple[str, ...], value: Any, *, whole: bool) -> Iterator[Comparison]:
    end = whole and path and len(value) > 1 if isinstance(value, Mapping) else True
    if end or not value or len(path) > DEPTH:
        yield Comparison(path, value)
        return
    for key, item in value.items():
        yield from _descend((*path, *str(key).split(".")), item, whole=whole)


def _deeper(value: Any, levels: int) -> bool:
    """Return True if objects and lists are nested more than `levels` deep."""
    here = [value]
    for _ in range(levels + 1):
        inner = (one.values() if isinstance(one, Mapping) else one for one in here if isinstance(one, _NESTING))
        here = [item for items in inner for item in items]
    return any(isinstance(one, _NESTING) for one in here)


_NESTING: Final = (Mapping, list, tuple)


def _problem(operator: Operator, one: Comparison) -> Problem | None:
    if len(one.path) > DEPTH:
        return f"more than {DEPTH} names deep", ""
    if not all(one.path):
        return "a name in the path is empty", ""
    if one.right is None:
        return "null is compared with, which nothing equals", ""
    if problem := operator.check(one.right, one.path[-1] if one.path else ""):
        return problem
    if isinstance(one.right, Mapping) and not one.right and not one.path:
        return "names no field", ""
    return None
