"""JSON parser and serializer for documents that do not block other threads for long.

Python's own parser holds the interpreter until it is done: 90 ms for 4 MiB. This one splits large texts into objects
and lists, and parses these one after the other. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from cloud.values.records import fields_of

SMALL: Final = 32 * 1024  # bytes to parse in one step: less than a millisecond
LARGE: Final = SMALL + 1  # represents an unknown size that may be large

MAX_EXAMINED: Final = 300  # values in a result; with more it is heavy

_object_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list_decoder: Final = msgspec.json.Decoder(list[msgspec.Raw])
_encode: Final = msgspec.json.Encoder().encode


def loads(text: str) -> Any:
    """Parse JSON as json.loads does. ValueError for invalid JSON; RecursionError if it is nested too deeply."""
    if len(text) <= SMALL:
        return json.loads(text)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ValueError("a surrogate is not part of a pair") from None
    try:
        return _parse(memoryview(data))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None


def dumps(document: Mapping[str, Any]) -> str:
    """Return JSON without spaces for a document that has passed `check_readable`."""
    try:
        return _encode(document).decode()
    except (OverflowError, TypeError):  # integers of more than 64 bits
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _parse(data: memoryview) -> Any:
    if len(data) <= SMALL:
        return json.loads(bytes(data))
    head = bytes(data[:64]).lstrip()[:1]
    if head == b"{":
        values = _object_decoder.decode(data)
        return dict(zip(values, _parse_all(values.values()), strict=True))
    if head == b"[":
        return _parse_all(_list_decoder.decode(data))
    return json.loads(bytes(data))  # a single long text


def _parse_all(values: Iterable[msgspec.Raw]) -> list[Any]:
    """Parse values, small ones in groups: parsing each separately takes fifty times as long."""
    parsed: list[Any] = []
    group: list[msgspec.Raw] = []
    size = 0
    for value in values:
        if (size := size + len(value) + 1) > SMALL:
            parsed += _parse_group(group)
            group, size = [], len(value)
        group.append(value)
    return parsed + _parse_group(group)


def _parse_group(values: list[msgspec.Raw]) -> list[Any]:
    if len(values) == 1:
        return [_parse(memoryview(values[0]))]
    parsed: list[Any] = json.loads(b"[%s]" % b",".join(values))
    return parsed


def heavy(size_or_result: Any) -> bool:
    """Return whether a request of this many bytes, or a result, blocks the event loop for several milliseconds."""
    if isinstance(size_or_result, int):
        return size_or_result > SMALL
    remaining, count = [size_or_result], 0
    while remaining:
        value = remaining.pop()
        count += 1
        if isinstance(value, str):
            if len(value) > SMALL:
                return True
        elif isinstance(value, Mapping):
            remaining += value.values()
        elif isinstance(value, list | tuple):
            remaining += value
        elif (record := fields_of(value)) is not None:
            remaining += record.values()
        if count + len(remaining) > MAX_EXAMINED:
            return True
    return False
