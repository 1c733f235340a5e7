"""Expressions of aggregations as SQL, by tables of operators. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cloud.domain.queries.mql.values import (
    ANY,
    AS_KIND,
    BOOLEAN,
    NUMBER,
    OBJECT,
    OPERATORS,
    TEXT,
    TIME,
    Expression,
    Fields,
    as_number,
    as_text,
    as_time,
    compared,
    field,
    invalid,
    literal,
    negation,
    output_name,
    truth,
    unsupported,
)


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
    if name in OPERATORS or name == "$ne":
        left, right = arguments(fields, name, operand, 2, 2)
        if name == "$ne":
            return Expression(negation(compared(left, "=", right)), BOOLEAN)
        return Expression(f"coalesce({compared(left, OPERATORS[name], right)}, false)", BOOLEAN)
    if name in FUNCTIONS:
        least, most, kinds, template, kind = FUNCTIONS[name]
        parts = [AS_KIND[kinds](each) for each in arguments(fields, name, operand, least, most)]
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
    convert = AS_KIND.get(parts[-1].kind)
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
