"""Operators of conditions: one row of OPERATORS each, with everything that is specific to the operator. Pure."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from schema.decoding import MAX_STEPS, MAX_TEXT, Effort, Pattern, PatternError, StepLimit, shown

Verdict: TypeAlias = tuple[bool, str]
"""Whether a comparison holds, and an explanation with {here} for the value in the reading and {there} for the other."""

Problem: TypeAlias = tuple[str, str]
"""Why an operator cannot be used with a value, and a remedy, or "" if the operator's `usage` is the remedy."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Operator of conditions. The value in the reading that `compare` gets is neither null nor an infinite number."""

    name: str
    sign: str  # on pages, between the field and the value
    usage: str  # how to write the value
    compare: Callable[[Any, Any, Effort | None], Verdict]  # value in the reading, value of the condition
    check: Callable[[Any, str], Problem | None] = lambda value, name: None  # value of the condition, its last name
    whole: bool = False  # compares an object below the top level as a whole, instead of each of its fields
    any_type: bool = False  # `compare` also gets two values of different types


def type_of(value: Any) -> str:
    """Return the type of a value in words."""
    return _TYPES.get(type(value)) or _type_of(value)


_TYPES: Final = {bool: "a boolean", int: "a number", float: "a number", str: "a string", dict: "an object"}


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, Mapping) else "null" if value is None else "a list"


def to_double(value: Any) -> float | None:
    """Convert a number to the nearest double; None if the result is not finite."""
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def _order(name: str, sign: str, words: str, test: Callable[[Any, Any], bool]) -> Operator:
    """Return the row of an operator that orders numbers or strings."""
    verdicts = _verdicts(words)

    def compare(left: Any, right: Any, effort: Effort | None) -> Verdict:
        kind = type_of(left)
        if kind not in {"a number", "a string"}:
            return False, f"{kind} cannot be ordered"
        a, b = (to_double(left), to_double(right)) if kind == "a number" else (left, right)
        return verdicts[a is not None and b is not None and test(a, b)]

    return Operator(name, sign, 'write a number or a string: {"field": 10}', compare, _check_order)


def _check_order(value: Any, name: str) -> Problem | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return f"{shown(value, name)} cannot be ordered", ""
    return None


def _equality(name: str, sign: str, words: str, usage: str, *, equal: bool) -> Operator:
    """Return the row of an operator that compares values of any type deeply."""
    verdicts = _verdicts(words)

    def compare(left: Any, right: Any, effort: Effort | None) -> Verdict:
        same = _equal(left, right)
        if same is None:
            return False, "{here} contains a number that is not finite"
        return verdicts[same is equal]

    return Operator(name, sign, usage, compare, whole=True)


def _equal(left: Any, right: Any) -> bool | None:
    """Compare two values deeply; None if a number is not finite. The nesting of `right` is limited."""
    kind = type_of(left)
    if kind != type_of(right):
        return False
    if kind == "a number":
        a, b = to_double(left), to_double(right)
        return None if a is None or b is None else a == b
    if kind not in {"an object", "a list"}:
        return bool(left == right)
    if kind == "an object":
        if left.keys() != right.keys():
            return False
        parts = [_equal(left[key], right[key]) for key in left]
    else:
        if len(left) != len(right):
            return False
        parts = [_equal(a, b) for a, b in zip(left, right, strict=True)]
    return None if None in parts else all(parts)


def _verdicts(words: str) -> tuple[Verdict, Verdict]:
    return (False, f"{{here}} is not {words} {{there}}"), (True, f"{{here}} is {words} {{there}}")


def _search(left: Any, right: Any, effort: Effort | None) -> Verdict:
    if not isinstance(left, str):
        return False, f"{{here}} is {type_of(left)}: regular expressions match only strings"
    try:
        matched = _pattern(str(right)).search(left, effort)
    except StepLimit:
        return False, f"the search was stopped after {MAX_STEPS} steps: simplify the expression"
    cut = f" in its first {MAX_TEXT} characters" if len(left) > MAX_TEXT else ""
    return matched, f"{{there}} is {'' if matched else 'not '}found in {{here}}{cut}"


def _check_pattern(value: Any, name: str) -> Problem | None:
    if not isinstance(value, str):
        return f"{shown(value, name)} is not a regular expression", ""
    try:
        Pattern(value)
    except PatternError as error:
        return str(error), "simplify the expression"
    return None


@functools.lru_cache(256)
def _pattern(text: str) -> Pattern:
    return Pattern(text)


OPERATORS: Final[Mapping[str, Operator]] = {
    row.name: row
    for row in (
        _order("lt", "<", "less than", lambda a, b: bool(a < b)),
        _order("gt", ">", "greater than", lambda a, b: bool(a > b)),
        _order("lte", "≤", "less than or equal to", lambda a, b: bool(a <= b)),
        _order("gte", "≥", "greater than or equal to", lambda a, b: bool(a >= b)),
        _equality("eq", "=", "equal to", 'write the value that the field must have: {"field": true}', equal=True),
        _equality(
            "neq", "≠", "different from", 'write the value that the field must not have: {"field": "off"}', equal=False
        ),
        Operator("regex", "matches", 'write a string: {"field": "^err"}', _search, _check_pattern, any_type=True),
    )
}
"""All operators by name."""

if TYPE_CHECKING:
    OperatorName: TypeAlias = str
else:
    OperatorName = Literal[tuple(OPERATORS)]  # for validation and the reference
