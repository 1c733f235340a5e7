"""Numbered records in a file that may be damaged anywhere: each one is found and checked by itself. Pure.

A record is MARK, the length of its data (u32), its number (u64), the CRC-32 of these two and the data (u32), the data;
numbers are big-endian. MARK begins with a byte that UTF-8 text never has, so a reader that lost its place finds the
next record.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

MARK: Final = b"\xf5\x4c"
MAX_DATA: Final = 1024 * 1024
"""Bytes of one record: a damaged length is not believed beyond."""

_HEAD = struct.Struct(">IQ")
_CRC = struct.Struct(">I")
OVERHEAD: Final = len(MARK) + _HEAD.size + _CRC.size
"""Bytes of a record beside its data."""


class Record(NamedTuple):
    """One record and its number."""

    number: int
    data: bytes


def encode(record: Record) -> bytes:
    """The bytes of a record. ValueError for one with more than MAX_DATA bytes."""
    if len(record.data) > MAX_DATA:
        raise ValueError(f"a record of {len(record.data)} bytes: at most {MAX_DATA} are possible")
    head = _HEAD.pack(len(record.data), record.number)
    return b"".join((MARK, head, _CRC.pack(zlib.crc32(record.data, zlib.crc32(head))), record.data))


def scan(data: bytes) -> Iterator[Record]:
    """Every undamaged record, in the order of the file; numbers always rise."""
    place, last = 0, -1
    while (place := data.find(MARK, place)) >= 0:
        record = _at(data, place)
        if record is None or record.number <= last:
            place += 1
            continue
        place += OVERHEAD + len(record.data)
        last = record.number
        yield record


def _at(data: bytes, place: int) -> Record | None:
    start = place + OVERHEAD
    if start > len(data):
        return None
    head = data[place + len(MARK) : place + len(MARK) + _HEAD.size]
    length, number = _HEAD.unpack(head)
    if length > MAX_DATA or start + length > len(data):
        return None
    (crc,) = _CRC.unpack_from(data, start - _CRC.size)
    body = data[start : start + length]
    return Record(number, body) if zlib.crc32(body, zlib.crc32(head)) == crc else None
