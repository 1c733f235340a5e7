"""Parser for call arguments from a command line: `power_pct=0.5`, `pin_names=a,b`, `extra={"a": 1}`."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from google.protobuf.descriptor import FieldDescriptor

from rpc.api.client import build_request, find_method
from rpc.api.convert.converters import CONVERTERS, converter_of
from rpc.api.convert.encode import is_map
from rpc.api.descriptions import type_text, wrapped_list
from rpc.api.methods import Method
from schema import API, ErrorKind, MachineError
from schema.decoding import did_you_mean

_BOOLS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}

_NUMBERS: Final = frozenset(
    {
        FieldDescriptor.CPPTYPE_DOUBLE,
        FieldDescriptor.CPPTYPE_FLOAT,
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    }
)


def parse_arguments(api: API | str, method: str, words: Iterable[str]) -> dict[str, Any]:
    """Parse `key=value` words into arguments for `ApiClient.call` and check them against the API.

    Text and enums are used unchanged; bytes are base64; lists are JSON or comma-separated plain values; values of other
    types except numbers and booleans are JSON. MachineError (INVALID) names the argument, its type, and the arguments
    of the method.
    """
    rpc_method = find_method(api, method)
    arguments: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise MachineError(
                f"{word!r} is not an argument",
                kind=ErrorKind.INVALID,
                remedy=f"write key=value; {_argument_list(rpc_method)}",
            )
        field = rpc_method.arguments.get(key)
        if field is None:
            hint = did_you_mean(key, rpc_method.arguments)
            raise MachineError(
                f"{method} has no argument {key!r}", kind=ErrorKind.INVALID, remedy=hint or _argument_list(rpc_method)
            )
        if key in arguments:
            raise MachineError(f"{key} is specified twice", kind=ErrorKind.INVALID, remedy="specify it once")
        try:
            arguments[key] = _value(field, text)
        except ValueError as error:
            raise MachineError(
                f"{key}: {error}", kind=ErrorKind.INVALID, remedy=f"it takes {type_text(field)}"
            ) from None
    build_request(rpc_method, "", arguments)
    return arguments


def _argument_list(method: Method) -> str:
    listed = ", ".join(f"{name} ({type_text(field)})" for name, field in method.arguments.items())
    return f"{method.name} takes {listed}" if listed else f"{method.name} takes no arguments"


def _value(field: FieldDescriptor, text: str) -> Any:
    if (own := CONVERTERS.get(field.full_name)) is not None:
        return _PARSERS[own.argument](text)
    if field.is_repeated and not is_map(field):
        if text.lstrip().startswith("["):
            return _json(text)
        row = converter_of(field)
        if field.message_type is not None and (row is None or row.argument != "text"):
            return _json(text)
        return [_single(field, part.strip()) for part in text.split(",")] if text.strip() else []
    return _single(field, text)


def _single(field: FieldDescriptor, text: str) -> Any:
    if (row := converter_of(field)) is not None:
        return _PARSERS[row.argument](text)
    message = field.message_type
    if message is not None:
        wrapped = wrapped_list(message)
        return _json(text) if wrapped is None or text.lstrip().startswith("{") else _value(wrapped, text)
    if field.enum_type is not None:
        return int(text) if text.lstrip("-").isdigit() else text
    if field.cpp_type in _NUMBERS:
        return _number(text)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return _bool(text)
    return _bytes(text) if field.type == FieldDescriptor.TYPE_BYTES else text


def _reading(what: str) -> Callable[[Callable[[str], Any]], Callable[[str], Any]]:
    """Return a decorator that converts every failure of a parser to a ValueError with the expected type, `what`."""

    def decorate(read: Callable[[str], Any]) -> Callable[[str], Any]:
        def guarded(text: str) -> Any:
            try:
                return read(text)
            except (ValueError, KeyError, binascii.Error, msgspec.DecodeError, RecursionError):
                raise ValueError(f"{text[:60]!r} is not {what}") from None

        return guarded

    return decorate


@_reading("a number")
def _number(text: str) -> float | int:
    try:
        return int(text)
    except ValueError:
        return float(text)


@_reading("true or false")
def _bool(text: str) -> bool:
    return _BOOLS[text.strip().lower()]


@_reading("base64")
def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


@_reading("JSON")
def _json(text: str) -> Any:
    return msgspec.json.decode(text)


_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {"text": str, "number": _number, "json": _json}
