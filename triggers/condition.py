"""Conditions of triggers: an operator, and a value with the structure of the reading. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from schema import ConfigError
from schema.document import Section
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
        for comparison in comparisons(self):
            where = ".".join(("value", *comparison.path))
            if problem := _problem(operator, comparison):
                raise ConfigError(where, problem[0], value=comparison.right, remedy=problem[1] or operator.usage)


def comparisons(condition: Eval) -> tuple[Comparison, ...]:
    """Return the comparisons of an eval, all of which must hold.

    Objects with one field and names with dots form a path. Several fields at the top level are separate comparisons.
    Below it, they are compared as one object by `eq` and `neq`, and separately by other operators.
    """
    return tuple(_descend((), condition.value, whole=OPERATORS[condition.operator].whole))


def _descend(path: tuple[str, ...], value: Any, *, whole: bool) -> Iterator[Comparison]:
    end = whole and path and len(value) > 1 if isinstance(value, Mapping) else True
    if end or not value or len(path) > DEPTH:
        yield Comparison(path, value)
        return
    for key, item in value.items():
        yield from _descend((*path, *str(key).split(".")), item, whole=whole)


def _deeper(value: Any, levels: int) -> bool:
    """Return True if objects and lists are nested more than `levels` deep."""
    level = [value]
    for _ in range(levels + 1):
        inner = (item.values() if isinstance(item, Mapping) else item for item in level if isinstance(item, _NESTING))
        level = [item for items in inner for item in items]
    return any(isinstance(item, _NESTING) for item in level)


_NESTING: Final = (Mapping, list, tuple)


def _problem(operator: Operator, comparison: Comparison) -> Problem | None:
    if len(comparison.path) > DEPTH:
        return f"more than {DEPTH} names deep", ""
    if not all(comparison.path):
        return "a name in the path is empty", ""
    if comparison.right is None:
        return "null cannot be compared: no value equals it", ""
    if problem := operator.check(comparison.right, comparison.path[-1] if comparison.path else ""):
        return problem
    if isinstance(comparison.right, Mapping) and not comparison.right and not comparison.path:
        return "has no field", ""
    return None
