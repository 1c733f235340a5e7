"""Conversion between JSON-like Python values and free-form messages (Struct, Value, ListValue).

Numbers are doubles on the wire: integers are read back as floats, exact up to 2**53. Bytes become base64 text, times
RFC 3339 text, durations seconds. Vector3, GeoPoint and Orientation become tagged objects, which the official clients
convert to their own types.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from rpc.api.convert.fit import FitError, plain
from schema import GeoPoint, Orientation, Vector3

_TYPED: dict[type, Any] = {
    Vector3: lambda v: {"x": v.x, "y": v.y, "z": v.z, "_type": "vector3"},
    GeoPoint: lambda v: {"lat": v.latitude, "lng": v.longitude, "_type": "geopoint"},
    Orientation: lambda v: {
        "ox": v.o_x,
        "oy": v.o_y,
        "oz": v.o_z,
        "theta": v.theta,
        "_type": "orientation_vector_degrees",
    },
    datetime: datetime.isoformat,
    timedelta: timedelta.total_seconds,
    bytes: lambda v: b64encode(v).decode("ascii"),
    bytearray: lambda v: b64encode(v).decode("ascii"),
    memoryview: lambda v: b64encode(v).decode("ascii"),
}

_EXPECTED = "a number, text, bool, None, bytes, list or mapping"


def fill_struct(message: Any, value: Any) -> None:
    """Fill a Struct from a mapping."""
    if not isinstance(value, Mapping):
        raise FitError("a mapping", value)
    fill_fields(message.fields, value)


def fill_fields(fields: Any, mapping: Mapping[str, Any]) -> None:
    """Fill a map of Values from a mapping with text keys."""
    for key, value in mapping.items():
        if type(key) is not str:
            raise FitError("a mapping with text keys", key)
        try:
            fill_value(fields[key], value)
        except FitError as error:
            error.inside(key)
            raise
        except (ValueError, UnicodeError):
            raise FitError("valid text", key) from None


def fill_value(message: Any, value: Any) -> None:
    """Fill a Value from a Python value; FitError if the type is not supported."""
    kind = type(value)
    if kind is float:
        message.number_value = value
    elif kind is str:
        _fill_text(message, value)
    elif kind is bool:
        message.bool_value = value
    elif kind is int:
        _fill_integer(message, value)
    elif value is None:
        message.null_value = 0
    elif kind is dict:
        _fill_mapping(message, value)
    elif kind is list or kind is tuple:
        _fill_list(message, value)
    else:
        _fill_other(message, value)


def _fill_text(message: Any, value: str) -> None:
    try:
        message.string_value = value
    except (ValueError, UnicodeError):
        raise FitError("valid text", value) from None


def _fill_integer(message: Any, value: int) -> None:
    try:
        message.number_value = value
    except (OverflowError, ValueError, TypeError):
        raise FitError("a number that a double can hold", value) from None


def _fill_mapping(message: Any, value: Mapping[str, Any]) -> None:
    struct = message.struct_value
    struct.SetInParent()
    fill_fields(struct.fields, value)


def _fill_list(message: Any, value: Iterable[Any]) -> None:
    target = message.list_value
    target.SetInParent()
    fill_list(target, value)


def fill_list(message: Any, value: Iterable[Any]) -> None:
    """Fill a ListValue from a sequence."""
    add = message.values.add
    for index, item in enumerate(value):
        try:
            fill_value(add(), item)
        except FitError as error:
            error.inside(str(index))
            raise


def _fill_other(message: Any, value: Any) -> None:
    typed = _TYPED.get(type(value))
    if typed is not None:
        fill_value(message, typed(value))
    elif isinstance(value, Enum):
        fill_value(message, value.value)
    elif isinstance(value, Mapping):
        _fill_mapping(message, value)
    elif isinstance(value, str):
        _fill_text(message, str(value))
    elif isinstance(value, (set, frozenset)):
        raise FitError(_EXPECTED, value)
    elif isinstance(value, Sequence):
        _fill_list(message, value)
    elif isinstance(value, (int, float)):
        fill_value(message, float(value))
    elif (converted := _from_library(value)) is not value:
        fill_value(message, converted)
    else:
        raise FitError(_EXPECTED, value)


def _from_library(value: Any) -> Any:
    """Convert arrays and scalars of numeric libraries to lists and numbers; return other values unchanged."""
    tolist = getattr(value, "tolist", None)
    return tolist() if callable(tolist) else plain(value)


def read_struct(message: Any) -> dict[str, Any]:
    """Convert a Struct to a dict."""
    return read_fields(message.fields)


def read_fields(fields: Any) -> dict[str, Any]:
    """Convert a map of Values to a dict."""
    return {key: read_value(fields[key]) for key in fields}


def read_list(message: Any) -> list[Any]:
    """Convert a ListValue to a list."""
    return [read_value(item) for item in message.values]


def read_value(message: Any) -> Any:
    """Convert a Value to a Python value; None for null and for a Value without a kind."""
    kind = message.WhichOneof("kind")
    if kind == "number_value":
        return message.number_value
    if kind == "string_value":
        return message.string_value
    if kind == "bool_value":
        return message.bool_value
    if kind == "struct_value":
        return read_fields(message.struct_value.fields)
    if kind == "list_value":
        return read_list(message.list_value)
    return None
