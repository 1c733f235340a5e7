"""Conditions of the stage $match as SQL, by a table of operators. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from cloud.domain.queries.mql.expressions import expression
from cloud.domain.queries.mql.reading import Pattern
from cloud.domain.queries.mql.values import (
    LIST,
    OPERATORS,
    TEXT,
    Expression,
    Fields,
    as_text,
    compared,
    field,
    invalid,
    literal,
    negation,
    truth,
    unsupported,
)
from cloud.domain.queries.statement import Invalid

MAX_CONDITION: Final = 1_000_000  # characters


def condition(fields: Fields, document: Any) -> str:
    """Return SQL of a condition, which may be NULL instead of false."""
    if not isinstance(document, dict):
        raise invalid("a condition is not an object")
    return _all(_part(fields, name, value) for name, value in document.items())


def _part(fields: Fields, name: str, value: Any) -> str:
    if name in ("$and", "$or", "$nor"):
        if not isinstance(value, list) or not value:
            raise invalid(f"{name} needs a list of conditions")
        parts = (condition(fields, each) for each in value)
        return _all(parts) if name == "$and" else _any(parts) if name == "$or" else negation(_any(parts))
    if name == "$expr":
        return truth(expression(fields, value))
    if name.startswith("$"):
        raise unsupported(f"the operator {name} in $match")
    subject = field(fields, name)
    if isinstance(value, dict) and any(key.startswith("$") for key in value):
        return _all(_operation(subject, key, operand, value) for key, operand in value.items())
    return _operation(subject, "$eq", value, {})


def _operation(subject: Expression, name: str, operand: Any, together: Mapping[str, Any]) -> str:
    if name == "$options" and "$regex" in together:
        return "true"
    make = _CONDITIONS.get(name)
    if make is None:
        raise unsupported(f"the operator {name} in $match")
    return make(subject, operand, together)


def _equal(subject: Expression, operand: Any) -> str:
    if isinstance(operand, Pattern):
        return _matches(subject, operand.text, operand.options)
    value = literal(operand)
    if subject.kind == LIST and value.kind == TEXT:
        return f"list_contains({subject.sql}, {value.sql})"
    return compared(subject, "=", value)


def _within(subject: Expression, operand: Any) -> str:
    if not isinstance(operand, list):
        raise invalid("$in and $nin need a list")
    return _any(_equal(subject, each) for each in operand)


def _exists(subject: Expression, operand: Any) -> str:
    return f"({subject.sql} IS {'NOT ' if operand else ''}NULL)"


def _regex(subject: Expression, operand: Any, together: Mapping[str, Any]) -> str:
    text, options = (operand.text, operand.options) if isinstance(operand, Pattern) else (operand, "")
    options = together.get("$options", options)
    if not isinstance(text, str) or not isinstance(options, str):
        raise invalid("$regex needs a text")
    return _matches(subject, text, options)


def _matches(subject: Expression, text: str, options: str) -> str:
    if set(options) - set("ims"):
        raise unsupported(f"the option {options!r} of a pattern")
    # RE2: its time is linear in the text, whatever the pattern is
    return f"regexp_matches({as_text(subject)}, {literal(text).sql}, {literal(options).sql})"


def _negated(subject: Expression, operand: Any) -> str:
    if not isinstance(operand, dict):
        return negation(_equal(subject, operand)) if isinstance(operand, Pattern) else _refusenegation()
    return negation(_all(_operation(subject, key, each, operand) for key, each in operand.items()))


def _refusenegation() -> str:
    raise invalid("$not needs an operator or a pattern")


def _ordered(operator: str) -> Callable[[Expression, Any, Mapping[str, Any]], str]:
    return lambda subject, operand, _: compared(subject, operator, literal(operand))


_CONDITIONS: Final[Mapping[str, Callable[[Expression, Any, Mapping[str, Any]], str]]] = {
    **{name: _ordered(operator) for name, operator in OPERATORS.items() if name != "$eq"},
    "$eq": lambda subject, operand, _: _equal(subject, operand),
    "$ne": lambda subject, operand, _: negation(_equal(subject, operand)),
    "$in": lambda subject, operand, _: _within(subject, operand),
    "$nin": lambda subject, operand, _: negation(_within(subject, operand)),
    "$exists": lambda subject, operand, _: _exists(subject, operand),
    "$regex": _regex,
    "$not": lambda subject, operand, _: _negated(subject, operand),
}


def _all(parts: Iterable[str]) -> str:
    return " AND ".join(f"({part})" for part in _bounded(parts)) or "true"


def _any(parts: Iterable[str]) -> str:
    return "(" + (" OR ".join(_bounded(parts)) or "false") + ")"


def _bounded(parts: Iterable[str]) -> Iterator[str]:
    """Yield parts until they are too long together: before all of them are in memory."""
    total = 0
    for part in parts:
        total += len(part)
        if total > MAX_CONDITION:
            raise Invalid("a condition is too large", "compare with fewer values")
        yield part
