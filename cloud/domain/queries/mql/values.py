"""Expressions and conditions of MongoDB's aggregations as SQL of DuckDB. Pure; tables of operators, and what uses them.

An `Expression` is SQL with the kind of its value. Fields of readings have the kind ANY: numbers, texts, booleans or
JSON, as the view decides when the query runs. Every name is quoted by `identifier`, and every value by `literal`;
no other text of a caller gets into SQL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.domain.queries.mql.reading import Pattern
from cloud.domain.queries.statement import Invalid

NUMBER, TEXT, BOOLEAN, TIME, LIST, OBJECT, ANY = "number", "text", "boolean", "time", "list", "object", "any"
_NUMBERS: Final = "('DOUBLE', 'BIGINT', 'UBIGINT', 'HUGEINT')"
MAX_NAME: Final = 200
MAX_PATH: Final = 1000  # characters of the path of a field
MAX_EXPRESSION: Final = 50_000  # characters: an operator names some arguments ten times, so nesting multiplies them
MAX_CONDITION: Final = 1_000_000  # characters


@dataclass(frozen=True, slots=True)
class Expression:
    """SQL, and the kind of its value. Invalid if the SQL is longer than MAX_EXPRESSION."""

    sql: str
    kind: str = ANY

    def __post_init__(self) -> None:
        if len(self.sql) > MAX_EXPRESSION:
            raise Invalid("an expression is too large", "nest less, or name parts of it with $addFields and $match")


Fields = Mapping[str, Expression]


def unsupported(what: str, remedy: str = "use what the how-to on data lists, or TabularDataBySQL") -> Invalid:
    """Return the refusal of a stage or operator."""
    return Invalid(f"{what[:MAX_NAME]} is not supported", remedy)


def invalid(what: str) -> Invalid:
    """Return the refusal of something that MongoDB refuses, too."""
    return Invalid(what, "see the documentation of MongoDB")


def identifier(name: str) -> str:
    """Return a name, quoted. Invalid for one that a field cannot have."""
    if not name or "\0" in name or len(name) > MAX_NAME:
        raise invalid(f"{name[:40]!r} cannot be the name of a field")
    return '"' + name.replace('"', '""') + '"'


def output_name(name: str) -> str:
    """Return the name of a new field, quoted. Invalid for one with a dot or dollar sign."""
    if "." in name or name.startswith("$"):
        raise invalid(f"{name[:40]!r} cannot be the name of a new field")
    return identifier(name)


def literal(value: Any) -> Expression:
    """Return a value as a literal of SQL. Invalid for lists, objects, and numbers that are not finite."""
    if value is None:
        return Expression("NULL")
    if isinstance(value, bool):
        return Expression("true" if value else "false", BOOLEAN)
    if isinstance(value, int):
        return Expression(f"({value}::BIGINT)" if value > -(1 << 63) else "(-9223372036854775807::BIGINT - 1)", NUMBER)
    if isinstance(value, float) and math.isfinite(value):
        return Expression(f"({value!r}::DOUBLE)", NUMBER)
    if isinstance(value, str):
        if "\0" in value:
            raise invalid("a text contains NUL")
        return Expression("'" + value.replace("'", "''") + "'", TEXT)
    if isinstance(value, datetime):
        return Expression(f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ', timespec='milliseconds')}'", TIME)
    raise unsupported(f"a value of the type {type(value).__name__}")


def field(fields: Fields, path: str) -> Expression:
    """Return the field at a path without `$`; NULL if the documents cannot have it."""
    if len(path) > MAX_PATH:
        raise invalid(f"the path of a field has more than {MAX_PATH} characters")
    first, *rest = path.split(".")
    base = fields.get(first)
    for name in (first, *rest):
        identifier(name)
    if base is None:
        return Expression("NULL")
    if not rest:
        return base
    if base.kind not in (OBJECT, ANY):
        return Expression("NULL")
    if base.kind == ANY:  # of JSON, or of nothing else: a struct would have the kind OBJECT
        pointer = "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in rest)
        return Expression(f"json_extract(to_json({base.sql}), {literal(pointer).sql})")
    return Expression(".".join((base.sql, *map(identifier, rest))))


# ---- kinds: what does not have it is NULL, as in MongoDB's sums


def as_number(value: Expression) -> str:
    """Return SQL of the number that a value is."""
    if value.kind == NUMBER:
        return value.sql
    if value.kind != ANY:
        return "NULL::DOUBLE"
    json = f"TRY_CAST({value.sql} AS JSON)"
    return (
        f"CASE WHEN typeof({value.sql}) IN {_NUMBERS} THEN TRY_CAST({value.sql} AS DOUBLE) "
        f"WHEN typeof({value.sql}) = 'JSON' AND json_type({json}) IN {_NUMBERS} THEN TRY_CAST({json} AS DOUBLE) END"
    )


def as_text(value: Expression) -> str:
    """Return SQL of the text that a value is."""
    if value.kind == TEXT:
        return value.sql
    if value.kind != ANY:
        return "NULL::VARCHAR"
    json = f"TRY_CAST({value.sql} AS JSON)"
    return (
        f"CASE WHEN typeof({value.sql}) = 'VARCHAR' THEN TRY_CAST({value.sql} AS VARCHAR) "
        f"WHEN typeof({value.sql}) = 'JSON' AND json_type({json}) = 'VARCHAR' THEN json_extract_string({json}, '$') END"
    )


def as_boolean(value: Expression) -> str:
    """Return SQL of the boolean that a value is."""
    if value.kind == BOOLEAN:
        return value.sql
    if value.kind != ANY:
        return "NULL::BOOLEAN"
    return f"CASE WHEN typeof({value.sql}) = 'BOOLEAN' THEN TRY_CAST({value.sql} AS BOOLEAN) END"


def as_time(value: Expression) -> str:
    """Return SQL of the time that a value is; readings have no times, apart from their own."""
    return value.sql if value.kind == TIME else "NULL::TIMESTAMP"


_AS: Final[Mapping[str, Callable[[Expression], str]]] = {
    NUMBER: as_number,
    TEXT: as_text,
    BOOLEAN: as_boolean,
    TIME: as_time,
}


def truth(value: Expression) -> str:
    """Return SQL of whether a value counts as true: numbers but 0, and everything else but false and nothing."""
    if value.kind == BOOLEAN:
        return f"coalesce({value.sql}, false)"
    if value.kind == NUMBER:
        return f"coalesce({value.sql} <> 0, false)"
    return f"({value.sql} IS NOT NULL AND coalesce({as_number(value)} <> 0, {as_boolean(value)}, true))"


def compared(left: Expression, operator: str, right: Expression) -> str:
    """Return SQL of a comparison: of the same kind only, as conditions of MongoDB compare."""
    if "NULL" in (left.sql, right.sql):
        other = right if left.sql == "NULL" else left
        return f"({other.sql} IS NULL)" if operator == "=" else "false"
    kind = right.kind if left.kind == ANY else left.kind
    if kind == ANY:
        pairs = [(convert(left), convert(right)) for convert in (as_number, as_text, as_boolean)]
        return "(" + " OR ".join(f"({a} {operator} {b})" for a, b in pairs) + ")"
    if kind not in _AS:
        raise unsupported("comparing lists and objects")
    return f"({_AS[kind](left)} {operator} {_AS[kind](right)})"


_OPERATORS: Final = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


# ---- conditions of $match


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
        return _all(parts) if name == "$and" else _any(parts) if name == "$or" else _not(_any(parts))
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
        return _not(_equal(subject, operand)) if isinstance(operand, Pattern) else _refuse_not()
    return _not(_all(_operation(subject, key, each, operand) for key, each in operand.items()))


def _refuse_not() -> str:
    raise invalid("$not needs an operator or a pattern")


def _ordered(operator: str) -> Callable[[Expression, Any, Mapping[str, Any]], str]:
    return lambda subject, operand, _: compared(subject, operator, literal(operand))


_CONDITIONS: Final[Mapping[str, Callable[[Expression, Any, Mapping[str, Any]], str]]] = {
    **{name: _ordered(operator) for name, operator in _OPERATORS.items() if name != "$eq"},
    "$eq": lambda subject, operand, _: _equal(subject, operand),
    "$ne": lambda subject, operand, _: _not(_equal(subject, operand)),
    "$in": lambda subject, operand, _: _within(subject, operand),
    "$nin": lambda subject, operand, _: _not(_within(subject, operand)),
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


def _not(part: str) -> str:
    return f"NOT coalesce({part}, false)"


# ---- expressions


def expression(fields: Fields, value: Any) -> Expression:
    """Return an expression: a field such as "$data.readings.celsius", an operator with its arguments, or a value."""
    if isinstance(value, str) and value.startswith("$"):
        return _variable(fields, value)
    if not isinstance(value, dict):
        return literal(value)
    if not any(name.startswith("$") for name in value):
        return packed(fields, value)
    if len(value) != 1:
        raise invalid("an operator stands alone in its object")
    ((name, operand),) = value.items()
    if name == "$literal":
        return literal(operand)
    if name in _OPERATORS or name == "$ne":
        left, right = arguments(fields, name, operand, 2, 2)
        if name == "$ne":
            return Expression(_not(compared(left, "=", right)), BOOLEAN)
        return Expression(f"coalesce({compared(left, _OPERATORS[name], right)}, false)", BOOLEAN)
    if name in FUNCTIONS:
        least, most, kinds, template, kind = FUNCTIONS[name]
        parts = [_AS[kinds](each) for each in arguments(fields, name, operand, least, most)]
        return Expression(f"({template(parts)})", kind)
    if name in SPECIAL:
        return SPECIAL[name](fields, operand)
    raise unsupported(f"the operator {name}")


def packed(fields: Fields, members: Mapping[str, Any]) -> Expression:
    """Return an object of expressions."""
    if not members:
        raise unsupported("an empty object")
    parts = [f"{output_name(name)} := {expression(fields, each).sql}" for name, each in members.items()]
    return Expression(f"struct_pack({', '.join(parts)})", OBJECT)


def _variable(fields: Fields, value: str) -> Expression:
    if value == "$$NOW":
        return Expression("(now() AT TIME ZONE 'UTC')", TIME)
    if value.startswith("$$"):
        raise unsupported(f"the variable {value}")
    return field(fields, value[1:])


def arguments(fields: Fields, name: str, operand: Any, least: int, most: int) -> list[Expression]:
    """Return the arguments of an operator. Invalid if there are too few or many."""
    listed = operand if isinstance(operand, list) else [operand]
    if not least <= len(listed) <= most:
        raise invalid(f"{name} has {len(listed)} arguments")
    return [expression(fields, each) for each in listed]


def _called(function: str) -> Callable[[Sequence[str]], str]:
    return lambda parts: f"{function}({', '.join(parts)})"


def _joined(operator: str) -> Callable[[Sequence[str]], str]:
    return lambda parts: f" {operator} ".join(f"({part})" for part in parts)


_MANY: Final = 100
FUNCTIONS: Final[Mapping[str, tuple[int, int, str, Callable[[Sequence[str]], str], str]]] = {
    "$add": (1, _MANY, NUMBER, _joined("+"), NUMBER),
    "$multiply": (1, _MANY, NUMBER, _joined("*"), NUMBER),
    "$divide": (2, 2, NUMBER, lambda parts: f"({parts[0]}) / nullif({parts[1]}, 0)", NUMBER),
    "$mod": (2, 2, NUMBER, lambda parts: f"({parts[0]}) % nullif({parts[1]}, 0)", NUMBER),
    "$pow": (2, 2, NUMBER, _called("pow"), NUMBER),
    "$abs": (1, 1, NUMBER, _called("abs"), NUMBER),
    "$ceil": (1, 1, NUMBER, _called("ceil"), NUMBER),
    "$floor": (1, 1, NUMBER, _called("floor"), NUMBER),
    "$sqrt": (1, 1, NUMBER, lambda parts: f"CASE WHEN {parts[0]} >= 0 THEN sqrt({parts[0]}) END", NUMBER),
    "$round": (1, 2, NUMBER, lambda parts: f"round_even({parts[0]}, ({[*parts, '0'][1]})::INTEGER)", NUMBER),
    "$concat": (1, _MANY, TEXT, _joined("||"), TEXT),
    "$toLower": (1, 1, TEXT, _called("lower"), TEXT),
    "$toUpper": (1, 1, TEXT, _called("upper"), TEXT),
    "$strLenCP": (1, 1, TEXT, _called("length"), NUMBER),
    "$year": (1, 1, TIME, _called("year"), NUMBER),
    "$month": (1, 1, TIME, _called("month"), NUMBER),
    "$dayOfMonth": (1, 1, TIME, _called("day"), NUMBER),
    "$dayOfWeek": (1, 1, TIME, lambda parts: f"dayofweek({parts[0]}) + 1", NUMBER),
    "$dayOfYear": (1, 1, TIME, _called("dayofyear"), NUMBER),
    "$hour": (1, 1, TIME, _called("hour"), NUMBER),
    "$minute": (1, 1, TIME, _called("minute"), NUMBER),
    "$second": (1, 1, TIME, _called("second"), NUMBER),
    "$millisecond": (1, 1, TIME, lambda parts: f"millisecond({parts[0]}) % 1000", NUMBER),
}
"""Operators: least and most arguments, their kind, SQL, and the kind of the result."""


def _subtract(fields: Fields, operand: Any) -> Expression:
    left, right = arguments(fields, "$subtract", operand, 2, 2)
    if left.kind == right.kind == TIME:
        return Expression(f"(epoch_ms({left.sql}) - epoch_ms({right.sql}))", NUMBER)
    if left.kind == TIME:
        return Expression(f"({left.sql} - to_milliseconds(({as_number(right)})::BIGINT))", TIME)
    return Expression(f"(({as_number(left)}) - ({as_number(right)}))", NUMBER)


def _cond(fields: Fields, operand: Any) -> Expression:
    if isinstance(operand, dict):
        if set(operand) != {"if", "then", "else"}:
            raise invalid("$cond needs if, then and else")
        operand = [operand["if"], operand["then"], operand["else"]]
    test, first, second = arguments(fields, "$cond", operand, 3, 3)
    kind = first.kind if first.kind == second.kind or second.sql == "NULL" else ANY
    kind = second.kind if first.sql == "NULL" else kind
    return Expression(f"(CASE WHEN {truth(test)} THEN {first.sql} ELSE {second.sql} END)", kind)


def _if_null(fields: Fields, operand: Any) -> Expression:
    parts = arguments(fields, "$ifNull", operand, 2, _MANY)
    convert = _AS.get(parts[-1].kind)
    if convert is None:
        return Expression(f"coalesce({', '.join(part.sql for part in parts)})", parts[0].kind)
    return Expression(f"coalesce({', '.join(map(convert, parts))})", parts[-1].kind)


def _logic(name: str, operator: str) -> Callable[[Fields, Any], Expression]:
    def make(fields: Fields, operand: Any) -> Expression:
        parts = [truth(each) for each in arguments(fields, name, operand, 1, _MANY)]
        return Expression("(" + operator.join(parts) + ")", BOOLEAN)

    return make


_UNITS: Final = ("millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
_LENGTHS: Final = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
_ANCHOR: Final = "TIMESTAMP '2000-01-01'"


def _named(name: str, operand: Any, needed: Sequence[str], optional: Sequence[str] = ()) -> Mapping[str, Any]:
    if not isinstance(operand, dict) or not set(needed) <= set(operand):
        raise invalid(f"{name} needs {', '.join(needed)}")
    if others := set(operand) - {*needed, *optional}:
        raise unsupported(f"{sorted(others)[0]} in {name}")
    if operand.get("timezone", "UTC") not in ("UTC", "GMT", "+00:00", "Z"):
        raise unsupported(f"another time zone than UTC in {name}")
    unit = operand.get("unit", "day")
    if unit not in _UNITS:
        raise unsupported(f"the unit {unit!r} in {name}")
    return operand


def _date_trunc(fields: Fields, operand: Any) -> Expression:
    named = _named("$dateTrunc", operand, ("date", "unit"), ("binSize", "timezone", "startOfWeek"))
    time, unit, size = as_time(expression(fields, named["date"])), named["unit"], named.get("binSize", 1)
    if not isinstance(size, int | float) or isinstance(size, bool) or size != int(size) or not 1 <= size <= 100_000:
        raise invalid("binSize of $dateTrunc is not a whole number from 1 to 100000")
    if unit == "week" or "startOfWeek" in named:
        if size != 1 or named.get("startOfWeek", "sunday").lower() not in ("sunday", "monday"):
            raise unsupported("weeks of $dateTrunc that do not begin on Sunday or Monday, or several of them")
        shift = "" if named.get("startOfWeek", "sunday").lower() == "monday" else " + INTERVAL 1 DAY"
        back = shift.replace("+", "-")
        return Expression(f"(date_trunc('week', {time}{shift}){back})", TIME)
    if size == 1:
        return Expression(f"date_trunc('{unit}', {time})", TIME)
    if unit in _LENGTHS:
        return Expression(f"time_bucket(to_milliseconds({int(size) * _LENGTHS[unit]}), {time}, {_ANCHOR})", TIME)
    months = int(size) * {"month": 1, "quarter": 3, "year": 12}[unit]
    return Expression(f"time_bucket(to_months({months}), {time}, {_ANCHOR})::TIMESTAMP", TIME)


def _date_diff(fields: Fields, operand: Any) -> Expression:
    named = _named("$dateDiff", operand, ("startDate", "endDate", "unit"), ("timezone",))
    if named["unit"] == "week":
        raise unsupported("the unit 'week' in $dateDiff")
    start, end = (as_time(expression(fields, named[name])) for name in ("startDate", "endDate"))
    return Expression(f"date_diff('{named['unit']}', {start}, {end})", NUMBER)


def _date_moved(name: str, sign: str) -> Callable[[Fields, Any], Expression]:
    def make(fields: Fields, operand: Any) -> Expression:
        named = _named(name, operand, ("startDate", "unit", "amount"), ("timezone",))
        time, unit = as_time(expression(fields, named["startDate"])), named["unit"]
        amount = f"({as_number(expression(fields, named['amount']))})::INTEGER"
        step = f"to_months(3 * {amount})" if unit == "quarter" else f"to_{unit}s({amount})"
        return Expression(f"({time} {sign} {step})", TIME)

    return make


def _to_string(fields: Fields, operand: Any) -> Expression:
    (value,) = arguments(fields, "$toString", operand, 1, 1)
    return Expression(f"({value.sql})::VARCHAR", TEXT)


def _to_double(fields: Fields, operand: Any) -> Expression:
    (value,) = arguments(fields, "$toDouble", operand, 1, 1)
    return Expression(f"coalesce({as_number(value)}, TRY_CAST({as_text(value)} AS DOUBLE))", NUMBER)


SPECIAL: Final[Mapping[str, Callable[[Fields, Any], Expression]]] = {
    "$subtract": _subtract,
    "$cond": _cond,
    "$ifNull": _if_null,
    "$and": _logic("$and", " AND "),
    "$or": _logic("$or", " OR "),
    "$not": lambda fields, operand: Expression(f"(NOT {truth(arguments(fields, '$not', operand, 1, 1)[0])})", BOOLEAN),
    "$dateTrunc": _date_trunc,
    "$dateDiff": _date_diff,
    "$dateAdd": _date_moved("$dateAdd", "+"),
    "$dateSubtract": _date_moved("$dateSubtract", "-"),
    "$toString": _to_string,
    "$toDouble": _to_double,
}
"""Operators that take named arguments, or whose result depends on the kinds of their arguments."""
