"""BSON encoder (bsonspec.org, version 1.1), for the rows of a query in the form that published clients expect."""

from __future__ import annotations

import struct
from collections.abc import Mapping
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
