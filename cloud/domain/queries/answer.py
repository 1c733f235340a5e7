"""Values of DuckDB as values that clients of the published call expect, and as BSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from cloud.domain.queries.bson import encode
from cloud.domain.queries.statement import WHOLE

_CASTS: Final = {
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",  # values of Python need a package of time zones; the session is in UTC
    "TIME WITH TIME ZONE": "VARCHAR",
    "TIMESTAMP_NS": "TIMESTAMP",
    "INTERVAL": "VARCHAR",  # Python has no months
    "UUID": "VARCHAR",
    "BIT": "VARCHAR",
}
_LONG: Final = range(-(1 << 63), 1 << 63)


def readable(type_: Any) -> str:
    """Return the type to which a column of a result is cast before it is read; most stay as they are."""
    text = str(type_)
    if text in _CASTS:
        return _CASTS[text]
    if type_.id == "struct" and all(name for name, _ in type_.children):
        members = (f"{_identifier(name)} {readable(inner)}" for name, inner in type_.children)
        return f"STRUCT({', '.join(members)})"
    if type_.id == "list":
        return f"{readable(type_.children[0][1])}[]"
    if type_.id == "array":
        return f"{readable(type_.children[0][1])}[{type_.children[1][1]}]"
    if type_.id == "map":
        return f"MAP({', '.join(readable(inner) for _, inner in type_.children[:2])})"
    return text


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def row_of(names: Sequence[str], converters: Sequence[Callable[[Any], Any]], values: Sequence[Any]) -> bytes:
    """Return a row as BSON; ValueError if a value cannot be sent."""
    pairs = zip(names, converters, values, strict=True)
    return encode({name: None if value is None else convert(value) for name, convert, value in pairs})


def converter(type_: Any) -> Callable[[Any], Any]:
    """Return the function that converts values of a type of DuckDB."""
    if str(type_) == "JSON":
        return _parsed
    make = _CONVERTERS.get(type_.id)
    return make(type_) if make is not None else _plain


def _parsed(text: str) -> Any:
    return json.loads(text, parse_int=_number)


def _number(text: str) -> int | float:
    return value if (value := int(text)) in _LONG else float(text)


def _struct(type_: Any) -> Callable[[Any], Any]:
    members = {name: converter(inner) for name, inner in type_.children}
    if WHOLE in members:
        return lambda value: None if value[WHOLE] is None else members[WHOLE](value[WHOLE])

    def convert(value: Any) -> Any:
        if isinstance(value, tuple):  # a struct without names
            return _plain(value)
        return {name: None if each is None else members[name](each) for name, each in value.items()}

    return convert


def _list(type_: Any) -> Callable[[Any], Any]:
    inner = converter(type_.children[0][1])
    return lambda value: [None if each is None else inner(each) for each in value]


def _map(type_: Any) -> Callable[[Any], Any]:
    key, inner = (converter(child) for _, child in type_.children[:2])
    if type_.children[0][1].id in _CONVERTERS:
        return _plain  # keys and values as two lists
    return lambda value: {str(key(name)): None if each is None else inner(each) for name, each in value.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, bool | str | bytes | float):
        return value
    if isinstance(value, int):
        return value if value in _LONG else float(value)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, time | timedelta):
        return str(value)
    if isinstance(value, dict):
        return {str(name): _plain(each) if each is not None else None for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) if each is not None else None for each in value]
    return str(value) if not hasattr(value, "as_integer_ratio") else float(value)  # Decimal


_CONVERTERS: Final[dict[str, Callable[[Any], Callable[[Any], Any]]]] = {
    "struct": _struct,
    "list": _list,
    "array": _list,
    "map": _map,
}
