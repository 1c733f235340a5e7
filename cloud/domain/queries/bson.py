"""BSON (bsonspec.org, version 1.1): the rows of a query in the form that published clients expect."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LONG: Final = range(-(1 << 63), 1 << 63)


def encode(document: Mapping[str, Any]) -> bytes:
    """Encode a document; ValueError for unsupported values.

    Values are None, bool, int (64 bits), float, str, bytes, aware datetime (truncated to milliseconds), lists, and
    mappings with text keys.
    """
    body = b"".join(_element(name, value) for name, value in document.items())
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def decode(content: bytes) -> dict[str, Any]:
    """Return a document that `encode` has made; times are in UTC."""
    return _document(content, 0)[0]


def _document(content: bytes, start: int) -> tuple[dict[str, Any], int]:
    end = start + int.from_bytes(content[start : start + 4], "little")
    document, place = {}, start + 4
    while place < end - 1:
        kind, after = content[place], content.index(b"\0", place + 1)
        name = content[place + 1 : after].decode()
        document[name], place = _decoded(kind, content, after + 1)
    return document, end


def _decoded(kind: int, content: bytes, place: int) -> tuple[Any, int]:
    if kind in _FIXED:
        form, convert = _FIXED[kind]
        end = place + struct.calcsize(form)
        return convert(*struct.unpack(form, content[place:end])), end
    if kind in (0x03, 0x04):
        document, end = _document(content, place)
        return document if kind == 0x03 else list(document.values()), end
    size = int.from_bytes(content[place : place + 4], "little")
    if kind == 0x02:
        return content[place + 4 : place + 3 + size].decode(), place + 4 + size
    return content[place + 5 : place + 5 + size], place + 5 + size


_FIXED: Final[dict[int, tuple[str, Callable[..., Any]]]] = {
    0x01: ("<d", float),
    0x08: ("<?", bool),
    0x09: ("<q", lambda number: _EPOCH + timedelta(milliseconds=number)),
    0x0A: ("", lambda: None),
    0x12: ("<q", int),
}


def _element(name: str, value: Any) -> bytes:
    if "\0" in name:
        raise ValueError(f"the name {name!r} contains NUL")
    kind, content = _value(value)
    return bytes([kind]) + name.encode() + b"\0" + content


def _value(value: Any) -> tuple[int, bytes]:
    if value is None:
        return 0x0A, b""
    if isinstance(value, bool):
        return 0x08, b"\1" if value else b"\0"
    if isinstance(value, int) and value in _LONG:
        return 0x12, struct.pack("<q", value)
    if isinstance(value, float):
        return 0x01, struct.pack("<d", value)
    if isinstance(value, str):
        text = value.encode()
        return 0x02, struct.pack("<i", len(text) + 1) + text + b"\0"
    if isinstance(value, bytes):
        return 0x05, struct.pack("<i", len(value)) + b"\0" + value
    if isinstance(value, datetime):
        return 0x09, struct.pack("<q", (value - _EPOCH) // timedelta(milliseconds=1))
    if isinstance(value, Mapping):
        return 0x03, encode(value)
    if isinstance(value, list | tuple):
        return 0x04, encode({str(index): item for index, item in enumerate(value)})
    raise ValueError(f"{type(value).__name__} cannot be encoded in BSON")
