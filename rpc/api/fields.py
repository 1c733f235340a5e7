"""Conversion between messages and HTTP: query parameters, path variables and JSON. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rpc.parsing import TOO_DEEP

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import Message

_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_AS_TEXT: Final = frozenset({"google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask"})
_WRAPPED: Final = "google.protobuf."


def read_query(
    message: Message, body: Mapping[str, Any], query: Iterable[tuple[str, str]], path: Mapping[str, str]
) -> None:
    """Fill `message` from JSON, `a.b=value` query pairs and path variables; later sources override earlier ones.

    Message fields in the query are JSON text. ValueError names the invalid field.
    """
    from google.protobuf.json_format import ParseDict, ParseError

    values = dict(body)
    kind: Any = message.DESCRIPTOR
    for name, texts in _grouped(query).items():
        _put(values, kind, name.split("."), texts)
    for name, text in path.items():
        _put(values, kind, name.split("."), [text])
    try:
        ParseDict(values, message, max_recursion_depth=64)
    except RecursionError:
        raise ValueError(f"the JSON of the request {TOO_DEEP}") from None
    except (ParseError, ValueError, TypeError) as error:
        raise ValueError(f"the request does not match {message.DESCRIPTOR.full_name}: {str(error)[:300]}") from None


def write_json(message: Message, limit: int) -> dict[str, Any]:
    """Convert a message to a JSON object, including fields without a value.

    Raises ValueError if the message, without images and files, has more than `limit` bytes, or if it has a value that
    JSON cannot represent.
    """
    from google.protobuf.json_format import Error, MessageToDict

    if (size := _weight(message, 3)) > limit:
        raise ValueError(f"the reply is too large for JSON ({size >> 10} KiB, at most {limit >> 10}): use gRPC")
    try:
        json_object: dict[str, Any] = MessageToDict(message, always_print_fields_with_no_presence=True)
    except Error as error:
        raise ValueError(f"the reply cannot be written as JSON: {error}") from None
    return json_object


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    texts_by_name: dict[str, list[str]] = {}
    for name, value in pairs:
        texts_by_name.setdefault(name, []).append(value)
    return texts_by_name


def _put(values: dict[str, Any], descriptor: Descriptor, names: list[str], texts: list[str]) -> None:
    """Set the field with the path `names` in `values` from its query texts."""
    for index, name in enumerate(names):
        field = descriptor.fields_by_name.get(name) or descriptor.fields_by_camelcase_name.get(name)
        if field is None:
            raise ValueError(f"{descriptor.full_name} has no field {name[:100]!r}")
        for other in (field.camelcase_name, field.json_name):
            if other != field.name and other in values:
                values[field.name] = values.pop(other)
        if index == len(names) - 1:
            values[field.name] = _values(field, texts)
        elif field.message_type is None or field.is_repeated:
            raise ValueError(f"{field.full_name} has no fields")
        else:
            inner = values.setdefault(field.name, {})
            if not isinstance(inner, dict):
                raise ValueError(f"{field.full_name} is specified twice")
            values, descriptor = inner, field.message_type


def _values(field: FieldDescriptor, texts: list[str]) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _json(field, texts[-1])
    if field.is_repeated:
        return [_value(field, text) for text in texts]
    if len(texts) > 1:
        raise ValueError(f"{field.full_name} is specified {len(texts)} times")
    return _value(field, texts[0])


def _value(field: FieldDescriptor, text: str) -> Any:
    if field.message_type is not None:
        return text if field.message_type.full_name in _AS_TEXT else _json(field, text)
    if field.cpp_type == field.CPPTYPE_BOOL:
        if text.lower() not in _BOOLEANS:
            raise ValueError(f"{field.full_name} is {text[:50]!r}: write true or false")
        return _BOOLEANS[text.lower()]
    if field.enum_type is not None and text.lstrip("-").isdigit():
        return int(text)
    return text


def _json(field: FieldDescriptor, text: str) -> Any:
    assert field.message_type is not None
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(f"the JSON of the request {TOO_DEEP}") from None
    except ValueError:
        if field.message_type.full_name.startswith(_WRAPPED):
            return text  # value of a wrapper such as StringValue
        raise ValueError(f"{field.full_name} is a message: write it as JSON") from None


def _weight(message: Message, depth: int) -> int:
    """Return the bytes of a message without its bytes fields in the outer `depth` levels, which are cheap to encode."""
    size = message.ByteSize()
    if depth and size:
        for field, value in message.ListFields():
            values = value if field.is_repeated else (value,)
            if field.type == field.TYPE_BYTES:
                size -= sum(map(len, values))
            elif field.message_type is not None and not field.message_type.GetOptions().map_entry and len(values) <= 64:
                size -= sum(part.ByteSize() - _weight(part, depth - 1) for part in values)
    return size
