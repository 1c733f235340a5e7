"""Values of readings, and their level for a condition. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from cloud.domain.alerts.life import Level, Value
from cloud.domain.alerts.rule import Condition

MAX_FIELDS: Final = 1000  # fields of one reading that are compared with patterns
MAX_TEXT: Final = 200  # characters of a value that are kept
_UP: Final = frozenset({"gt", "gte"})
_ESCAPED: Final = frozenset('"\\')  # JSON writes them in another way


def keys_of(condition: Condition) -> tuple[str, ...]:
    """Return the parts of the path that the JSON of a reading must contain: a cheap test before it is parsed."""
    pieces = (text for segment in condition.path.split(".") for text in segment.split("*"))
    return tuple(text for text in pieces if text and not _ESCAPED & set(text))


def value_of(condition: Condition, reading: Any) -> Value:
    """Return the value at the path of a condition, below `readings` or else at the top level; None if there is none.

    Numbers that are not finite, null, objects and lists are no values. Of several numbers that match a pattern, the
    greatest counts, or the least if low values alert.
    """
    if not isinstance(reading, Mapping):
        return None
    inner = reading.get("readings")
    segments = condition.path.split(".")
    for top in (inner, reading):
        values = [value for value in _values_at(top, segments, [MAX_FIELDS]) if _usable(value)]
        numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        if numbers:
            return float(max(numbers) if condition.comparison in _UP else min(numbers))
        if values:
            return values[0][:MAX_TEXT] if isinstance(values[0], str) else values[0]
    return None


def level_of(condition: Condition, value: Value) -> Level | None:
    """Return the level of a value; None if it cannot be compared, as if there were no reading."""
    threshold, recovery = condition.threshold, condition.recovery
    if condition.comparison in ("eq", "neq"):
        if isinstance(value, bool) is not isinstance(threshold, bool) or isinstance(value, str) is not isinstance(
            threshold, str
        ):
            return None
        return Level.BAD if (value == threshold) is (condition.comparison == "eq") else Level.GOOD
    if isinstance(value, bool | str) or value is None or isinstance(threshold, str):
        return None
    if _beyond(condition.comparison, value, threshold):
        return Level.BAD
    if recovery is None or not _between(condition.comparison, value, recovery):
        return Level.GOOD
    return Level.BETWEEN


def _beyond(comparison: str, value: float, threshold: float) -> bool:
    match comparison:
        case "gt":
            return value > threshold
        case "gte":
            return value >= threshold
        case "lt":
            return value < threshold
        case _:
            return value <= threshold


def _between(comparison: str, value: float, recovery: float) -> bool:
    return value > recovery if comparison in _UP else value < recovery


def _values_at(value: Any, segments: list[str], left: list[int]) -> Iterator[Any]:
    """Yield the values at a path; `left` has the number of fields that may still be compared with patterns."""
    if not segments:
        yield value
        return
    if not isinstance(value, Mapping):
        return
    name, rest = segments[0], segments[1:]
    if "*" not in name:
        if name in value:
            yield from _values_at(value[name], rest, left)
        return
    pattern = name.replace("[", "[[]").replace("?", "[?]")
    for key, item in value.items():
        left[0] -= 1
        if left[0] < 0:
            return
        if fnmatchcase(str(key), pattern):
            yield from _values_at(item, rest, left)


def _usable(value: Any) -> bool:
    return isinstance(value, bool | str | int) or (isinstance(value, float) and math.isfinite(value))
