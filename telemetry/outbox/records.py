"""Numbered records in a file that may be damaged anywhere: each record is located and checked independently. Pure.

A record is MARK, the length of its data (u32), its number (u64), the CRC-32 of these two and the data (u32), the data;
integers are big-endian. MARK begins with a byte that never occurs in UTF-8 text, so a reader can find the next record
after a damaged part.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

MARK: Final = b"\xf5\x4c"
MAX_DATA: Final = 1024 * 1024
"""Maximum bytes of a record; a larger length is treated as damage."""

_HEAD = struct.Struct(">IQ")
_CRC = struct.Struct(">I")
OVERHEAD: Final = len(MARK) + _HEAD.size + _CRC.size
"""Bytes of a record in addition to its data."""


class OutboxRecord(NamedTuple):
    """A record and its number."""

    number: int
    data: bytes


def encode(record: OutboxRecord) -> bytes:
    """Encode a record. ValueError if its data has more than MAX_DATA bytes."""
    if len(record.data) > MAX_DATA:
        raise ValueError(f"a record of {len(record.data)} bytes is too large: the limit is {MAX_DATA}")
    head = _HEAD.pack(len(record.data), record.number)
    return b"".join((MARK, head, _CRC.pack(zlib.crc32(record.data, zlib.crc32(head))), record.data))


def scan(data: bytes) -> Iterator[OutboxRecord]:
    """Iterate over the undamaged records in the order of the file; their numbers are increasing."""
    offset, last = 0, -1
    while (offset := data.find(MARK, offset)) >= 0:
        record = _at(data, offset)
        if record is None or record.number <= last:
            offset += 1
            continue
        offset += OVERHEAD + len(record.data)
        last = record.number
        yield record


def _at(data: bytes, offset: int) -> OutboxRecord | None:
    start = offset + OVERHEAD
    if start > len(data):
        return None
    head = data[offset + len(MARK) : offset + len(MARK) + _HEAD.size]
    length, number = _HEAD.unpack(head)
    if length > MAX_DATA or start + length > len(data):
        return None
    (crc,) = _CRC.unpack_from(data, start - _CRC.size)
    body = data[start : start + length]
    return OutboxRecord(number, body) if zlib.crc32(body, zlib.crc32(head)) == crc else None
