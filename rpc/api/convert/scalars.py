"""Validation and conversion of values for scalar and enum fields."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from rpc.api.convert.fit import FitError, plain
from rpc.api.convert.names import enum_prefix

_MAX_FLOAT: Final = 3.4028235677973366e38  # larger values would round to infinity

_INTEGERS: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}

_KINDS: Final = {
    FieldDescriptor.CPPTYPE_DOUBLE: "number",
    FieldDescriptor.CPPTYPE_FLOAT: "number",
    FieldDescriptor.CPPTYPE_BOOL: "true or false",
}


def check_of(field: FieldDescriptor) -> Callable[[Any], Any]:
    """Return a function that converts a value for `field`, or raises FitError."""
    kind = field.cpp_type
    if kind in _INTEGERS:
        return _integer(*_INTEGERS[kind])
    if field.enum_type is not None:
        return _enum(field.enum_type)
    if kind == FieldDescriptor.CPPTYPE_DOUBLE:
        return number
    if kind == FieldDescriptor.CPPTYPE_FLOAT:
        return _single
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return _bool
    return _bytes if field.type == FieldDescriptor.TYPE_BYTES else _text


def number(value: Any) -> float:
    """Convert a number to float; FitError for other types, including bool and text."""
    if type(value) is float:
        return value
    if not isinstance(value, (int, float)):
        value = plain(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FitError("a number", value)
    try:
        return float(value)
    except OverflowError:
        raise FitError("a number that a double can hold", value) from None


def _single(value: Any) -> float:
    checked = number(value)
    if _MAX_FLOAT <= abs(checked) < float("inf"):
        raise FitError("a number that 32 bits can hold", value)
    return checked


def _integer(low: int, high: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if type(value) is not int:
            value = _whole(value)
        if not low <= value <= high:
            raise FitError(f"a whole number from {low} to {high}", value)
        return int(value)

    return check


def _whole(value: Any) -> int:
    value = plain(value)
    if isinstance(value, bool):
        raise FitError("a whole number", value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        return operator.index(value)
    except TypeError:
        raise FitError("a whole number", value) from None


def _bool(value: Any) -> bool:
    value = value if type(value) is bool else plain(value)
    if not isinstance(value, bool):
        raise FitError("true or false", value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise FitError("text", value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise FitError("valid text", value) from None
    return value


def _bytes(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise FitError("bytes", value)


def short_names(descriptor: EnumDescriptor) -> dict[str, int]:
    """Return the values of an enum by name, without the common prefix."""
    prefix = enum_prefix([value.name for value in descriptor.values])
    return {value.name[len(prefix) :]: value.number for value in descriptor.values}


def _enum(descriptor: EnumDescriptor) -> Callable[[Any], int]:
    names = short_names(descriptor)
    numbers = frozenset(names.values())
    numbers_by_name = {name.lower(): number for name, number in names.items()}
    numbers_by_name |= {value.name.lower(): value.number for value in descriptor.values}
    expected = f"one of {', '.join(names)}"

    def check(value: Any) -> int:
        if isinstance(value, str):
            enum_number = numbers_by_name.get(value.lower())
            if enum_number is None:
                raise FitError(expected, value)
            return enum_number
        value = value if isinstance(value, int) else plain(value)
        if isinstance(value, bool) or value not in numbers:
            raise FitError(expected, value)
        return int(value)

    return check


def type_name(field: FieldDescriptor) -> str:
    """Describe the values of a scalar or enum field for display."""
    if field.enum_type is not None:
        return f"one of {', '.join(short_names(field.enum_type))}"
    if field.cpp_type in _INTEGERS:
        return "whole number" if _INTEGERS[field.cpp_type][0] else "whole number, 0 or more"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return "bytes"
    return _KINDS.get(field.cpp_type, "text")
