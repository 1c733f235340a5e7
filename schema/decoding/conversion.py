"""Conversion of decoded JSON values to a Python type, with a report of all errors.

msgspec decodes fast but stops at the first error and does not name map keys. This module walks the value along the type
description of msgspec, reports every error with its exact path, and builds an instance if there is none.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import json
import math
import re
import uuid
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from schema.decoding.report import DecodingReport, did_you_mean, join, shown
from schema.durations import parse_duration
from schema.errors import ConfigError, ConfigErrors
from schema.secrets import MASK, shortened

T = TypeVar("T")

LONGEST_VALUE = 60  # characters of a text in a message
_NANOSECONDS_MEANT = 1_000_000  # a smaller number without unit is probably not meant as nanoseconds


def conform(cls: type[T], raw: Any, path: str, report: DecodingReport) -> T | None:
    """Convert `raw` to an instance of `cls`; None if at least one problem was reported."""
    before = len(report.problems)
    value: T = _walk(_type_info(cls), raw, path, report)
    return value if len(report.problems) == before else None


def _type_info(cls: Any) -> inspect.Type:
    return _cached_type_info(cls)


@functools.cache
def _cached_type_info(cls: Hashable) -> inspect.Type:
    return inspect.type_info(cls)


def field_names(cls: type[Any]) -> tuple[str, ...]:
    """Return the keys of a msgspec Struct as written in documents."""
    info = _type_info(cls)
    assert isinstance(info, inspect.StructType)
    return tuple(field.encode_name for field in info.fields)


def _walk(info: inspect.Type, value: Any, path: str, report: DecodingReport) -> Any:
    if isinstance(info, inspect.Metadata):
        if (info.extra or {}).get("duration"):
            value = _duration(value, path, report)
            return value if value is None else _number(info.type, value, path, report)
        return _walk(info.type, value, path, report)
    if isinstance(info, inspect.UnionType):
        return _union(info, value, path, report)
    walker = _WALKERS.get(type(info))
    return value if walker is None else walker(info, value, path, report)


def _json_kind(value: Any) -> str:
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return type(value).__name__


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "null"),
    (bool, "a boolean"),
    (int, "a whole number"),
    (float, "a number"),
    (str, "a string"),
    ((list, tuple), "a list"),
    (Mapping, "an object"),
)


def wrong_type(value: Any, expected: str, path: str, report: DecodingReport, remedy: str = "") -> None:
    """Report that `value` is not of the type described by `expected`."""
    if value is None:
        report.problem(path, f"must be {expected}, not null", remedy=remedy or f"write {expected} or remove the key")
        return
    written = shown(value, path)
    if MASK in written:
        written = _json_kind(value)
    elif isinstance(value, str):
        written = json.dumps(shortened(value, LONGEST_VALUE), ensure_ascii=False)
    report.problem(path, f"must be {expected}, not {written}", value=value, remedy=remedy or f"write {expected}")


def _struct(info: Any, value: Any, path: str, report: DecodingReport) -> Any:
    if not isinstance(value, Mapping):
        wrong_type(value, "an object", path, report)
        return None
    fields_by_key = {field.encode_name: field for field in info.fields}
    missing = [name for name, field in fields_by_key.items() if field.required and name not in value]
    for name in missing:
        expected = _describe(fields_by_key[name].type)
        report.problem(
            path, f"{name!r} is missing", remedy=f"add {name!r}: {expected}" if expected else f"add {name!r}"
        )
    before = len(report.problems) - len(missing)
    arguments = {}
    for key, item in value.items():
        if key in fields_by_key:
            arguments[fields_by_key[key].name] = _walk(fields_by_key[key].type, item, join(path, key), report)
        else:
            report.unknown_key(path, key, fields_by_key.keys() - (value.keys() - set(missing)), value=item)
    return None if len(report.problems) > before else _build(info.cls, arguments, path, report)


def _build(cls: Any, arguments: dict[str, Any], path: str, report: DecodingReport) -> Any:
    # No local variable may hold an error: its traceback refers to this frame, and such a cycle would keep the whole
    # document until the next garbage collection.
    try:
        return cls(**arguments)
    except ConfigErrors as errors:
        _report_all(errors.problems, path, report)
    except ConfigError as error:
        _report_all((error,), path, report)
    except (ValueError, TypeError) as error:
        report.problem(path, str(error))
    return None


def _report_all(problems: Iterable[ConfigError], path: str, report: DecodingReport) -> None:
    """Report the problems of a record below its path."""
    for problem in problems:
        where = join(path, problem.path) if problem.path else path
        report.problem(where, problem.reason, value=problem.value, remedy=problem.remedy)


def _dict(info: Any, value: Any, path: str, report: DecodingReport) -> Any:
    if not isinstance(value, Mapping):
        wrong_type(value, "an object", path, report)
        return None
    return {key: _walk(info.value_type, item, join(path, key), report) for key, item in value.items()}


def _list(info: Any, value: Any, path: str, report: DecodingReport) -> Any:
    if not isinstance(value, (list, tuple)):
        wrong_type(value, "a list", path, report)
        return None
    _length(info, value, path, report)
    items = [_walk(info.item_type, item, join(path, index), report) for index, item in enumerate(value)]
    return _COLLECTIONS[type(info)](items)


def _tuple(info: Any, value: Any, path: str, report: DecodingReport) -> Any:
    if not isinstance(value, (list, tuple)) or len(value) != len(info.item_types):
        wrong_type(value, f"a list of {len(info.item_types)}", path, report)
        return None
    pairs = enumerate(zip(info.item_types, value, strict=True))
    return tuple(_walk(kind, item, join(path, index), report) for index, (kind, item) in pairs)


def _number(info: Any, value: Any, path: str, report: DecodingReport) -> Any:
    whole = isinstance(info, inspect.IntType)
    expected = "a whole number" if whole else "a number"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        remedy = ""
        if isinstance(value, str) and _is_number(value, whole=whole):
            remedy = f"write {shown(value, path).strip(chr(39))} without quotes"
        wrong_type(value, expected, path, report, remedy)
        return None
    if not _is_finite(value):
        wrong_type(value, "a finite number", path, report)
        return None
    if whole and isinstance(value, float):
        if not value.is_integer():
            wrong_type(value, expected, path, report)
            return None
        value = int(value)
    elif not whole:
        value = float(value)
    for name, _, holds in _BOUNDS:
        bound = getattr(info, name)
        if bound is not None and not holds(value, bound):
            allowed = _bounds_text(info)
            report.problem(
                path, f"{shown(value, path)} is out of range", value=value, remedy=f"write {expected} {allowed}"
            )
            break
    return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond the range of floats
        return False


def _is_number(text: str, *, whole: bool) -> bool:
    try:
        int(text) if whole else float(text)
    except ValueError:
        return False
    return True


_BOUNDS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("ge", "from", lambda value, bound: bool(value >= bound)),
    ("gt", "above", lambda value, bound: bool(value > bound)),
    ("le", "to", lambda value, bound: bool(value <= bound)),
    ("lt", "below", lambda value, bound: bool(value < bound)),
)


def _bounds_text(info: Any) -> str:
    bounds = [(word, getattr(info, name)) for name, word, _ in _BOUNDS if getattr(info, name) is not None]
    return " ".join(f"{word} {bound if isinstance(bound, int) else f'{bound:g}'}" for word, bound in bounds)


def _string(info: Any, value: Any, path: str, report: DecodingReport) -> Any:
    if not isinstance(value, str):
        numeric = isinstance(value, (int, float, bool))
        written = shown(value, path)
        quoted = "write it in double quotes" if MASK in written else f'write "{written}"'
        wrong_type(value, "a string", path, report, quoted if numeric else "")
        return None
    _length(info, value, path, report)
    if info.pattern is not None and not re.search(info.pattern, value):
        report.problem(path, f"{shown(value, path)} does not match {info.pattern}", value=value)
    return value


def _length(info: Any, value: Any, path: str, report: DecodingReport) -> None:
    if info.min_length is not None and len(value) < info.min_length:
        reason = "is empty" if not value else f"has {len(value)} characters or items"
        report.problem(path, f"{shown(value, path)} {reason}", value=value, remedy=f"use at least {info.min_length}")
    if info.max_length is not None and len(value) > info.max_length:
        report.problem(
            path, f"has {len(value)} characters or items", value=value, remedy=f"use at most {info.max_length}"
        )


def _bool(info: Any, value: Any, path: str, report: DecodingReport) -> Any:
    if isinstance(value, bool):
        return value
    quoted = isinstance(value, str) and value.lower() in {"true", "false"}
    wrong_type(value, "true or false", path, report, f"write {str(value).lower()} without quotes" if quoted else "")
    return None


def _none(info: Any, value: Any, path: str, report: DecodingReport) -> Any:
    if value is not None:
        wrong_type(value, "null", path, report)


def _choice(info: Any, value: Any, path: str, report: DecodingReport) -> Any:
    choices = [member.value for member in info.cls] if isinstance(info, inspect.EnumType) else list(info.values)
    if value not in choices or isinstance(value, bool) is not any(value is choice for choice in (True, False)):
        words = [str(choice) for choice in choices]
        remedy = did_you_mean(value, words) if isinstance(value, str) else ""
        listed = f"write one of {', '.join(map(repr, choices))}"
        report.problem(path, f"{shown(value, path)} is not a valid value", value=value, remedy=remedy or listed)
        return None
    return info.cls(value) if isinstance(info, inspect.EnumType) else value


def _leaf(info: Any, value: Any, path: str, report: DecodingReport) -> Any:
    try:
        return msgspec.convert(value, _LEAVES[type(info)])
    except msgspec.ValidationError as error:
        report.problem(path, f"{shown(value, path)}: {error}", value=value)
        return None


def _duration(value: Any, path: str, report: DecodingReport) -> float | None:
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except ValueError:
            report.problem(
                path,
                f"{shown(value, path)} is not a duration",
                value=value,
                remedy='write for example "10s" or "1h30m"',
            )
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        wrong_type(value, "a duration", path, report, 'write for example "10s" or "1h30m"')
        return None
    if 0 < abs(value) < _NANOSECONDS_MEANT:
        report.warn(
            path, f"{value} means {value} nanoseconds", value=value, remedy=f'write a unit, such as "{value:g}s"'
        )
    return value / 1e9


def _union(info: inspect.UnionType, value: Any, path: str, report: DecodingReport) -> Any:
    members = [member for member in info.types if not isinstance(member, inspect.NoneType)]
    if value is None and len(members) < len(info.types):
        return None
    if len(members) == 1:
        return _walk(members[0], value, path, report)
    attempts = []
    for member in members:
        attempt = DecodingReport()
        result = _walk(member, value, path, attempt)
        if not attempt.problems:
            report.warnings.extend(attempt.warnings)
            return result
        attempts.append(attempt)
    deep = [attempt for attempt in attempts if any(problem.path != path for problem in attempt.problems)]
    if deep:
        report.problems.extend(deep[0].problems)
    else:
        wrong_type(value, " or ".join(filter(None, map(_describe, members))), path, report)
    return None


def _describe(info: inspect.Type) -> str:
    if isinstance(info, inspect.Metadata):
        return 'a duration such as "10s"' if (info.extra or {}).get("duration") else _describe(info.type)
    if isinstance(info, inspect.UnionType):
        return " or ".join(_describe(member) for member in info.types if not isinstance(member, inspect.NoneType))
    if isinstance(info, inspect.LiteralType):
        return f"one of {', '.join(map(repr, info.values))}"
    return _DESCRIPTIONS.get(type(info), "")


_DESCRIPTIONS: Mapping[type, str] = {
    inspect.StrType: "a string",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.ListType: "a list",
    inspect.VarTupleType: "a list",
    inspect.TupleType: "a list",
    inspect.SetType: "a list",
    inspect.FrozenSetType: "a list",
    inspect.DictType: "an object",
    inspect.StructType: "an object",
    inspect.DataclassType: "an object",
}

_COLLECTIONS: Mapping[type, Callable[[list[Any]], Any]] = {
    inspect.ListType: list,
    inspect.VarTupleType: tuple,
    inspect.SetType: set,
    inspect.FrozenSetType: frozenset,
}

_LEAVES: Mapping[type, type] = {
    inspect.BytesType: bytes,
    inspect.DateTimeType: datetime.datetime,
    inspect.TimeDeltaType: datetime.timedelta,
    inspect.UUIDType: uuid.UUID,
    inspect.DecimalType: decimal.Decimal,
}

_WALKERS: Mapping[type, Callable[[Any, Any, str, DecodingReport], Any]] = {
    inspect.StructType: _struct,
    inspect.DataclassType: _struct,
    inspect.DictType: _dict,
    inspect.ListType: _list,
    inspect.VarTupleType: _list,
    inspect.SetType: _list,
    inspect.FrozenSetType: _list,
    inspect.TupleType: _tuple,
    inspect.IntType: _number,
    inspect.FloatType: _number,
    inspect.StrType: _string,
    inspect.BoolType: _bool,
    inspect.NoneType: _none,
    inspect.LiteralType: _choice,
    inspect.EnumType: _choice,
    **dict.fromkeys(_LEAVES, _leaf),
}
