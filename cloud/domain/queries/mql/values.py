"""Values in SQL of DuckDB, for aggregations of MongoDB: names, literals, fields and comparisons. Pure.

An `Expression` is SQL with the kind of its value. Fields of readings have the kind ANY: numbers, texts, booleans or
JSON, as the view decides when the query runs. Every name is quoted by `identifier`, and every value by `literal`;
no other text of a caller gets into SQL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.domain.queries.statement import Invalid

NUMBER, TEXT, BOOLEAN, TIME, LIST, OBJECT, ANY = "number", "text", "boolean", "time", "list", "object", "any"
_NUMBERS: Final = "('DOUBLE', 'BIGINT', 'UBIGINT', 'HUGEINT')"
MAX_NAME: Final = 200
MAX_PATH: Final = 1000  # characters of the path of a field
MAX_EXPRESSION: Final = 50_000  # characters: an operator names some arguments ten times, so nesting multiplies them


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


AS_KIND: Final[Mapping[str, Callable[[Expression], str]]] = {
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
    if kind not in AS_KIND:
        raise unsupported("comparing lists and objects")
    return f"({AS_KIND[kind](left)} {operator} {AS_KIND[kind](right)})"


OPERATORS: Final = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


def negation(part: str) -> str:
    """Return SQL of the opposite of a condition, which may be NULL instead of false."""
    return f"NOT coalesce({part}, false)"
