"""Full-time diagnostic data capture (FTDC): encoder and decoder for the file format of the reference server. Pure.

A file is a sequence of documents. A *schema* is the byte 0x01, a JSON array of names, a line feed. A *sample* belongs
to the preceding schema: one bit that is 0, then one bit for each name that says whether its value differs from the
previous one (least significant bit first, padded to whole bytes); nanoseconds since 1970 as a big-endian int64; and a
big-endian float32 for each value that differs. After a schema, the previous values are 0.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

SCHEMA: Final = 0x01
_SIZE: Final = 4  # bytes of one value
_TIME: Final = struct.Struct(">q")
_VALUE: Final = struct.Struct(">f")
_LARGEST: Final = 3.4028234663852886e38  # of float32, IEEE 754


class FtdcEncoder:
    """Encodes the documents of one file. Call `clear` when a new file begins."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._pack = struct.Struct("")
        self._before = b""

    def clear(self) -> None:
        """Write a schema before the next sample."""
        self._names = []

    def encode(self, when: int, values: Mapping[str, float]) -> bytes:
        """Encode a sample taken at `when` (nanoseconds since 1970), after a schema if the names have changed."""
        names = list(values)
        head = b""
        if names != self._names or not names:
            self._names = names
            self._pack = struct.Struct(f">{len(names)}f")
            self._before = bytes(_SIZE * len(names))
            head = bytes((SCHEMA,)) + json.dumps(names, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        try:
            after = self._pack.pack(*values.values())
        except OverflowError:
            after = self._pack.pack(*(_as_float32(value) for value in values.values()))
        before = self._before
        bits = bytearray((len(names) + 8) // 8)
        changed = []
        if after != before:
            for index in range(len(names)):
                start = index * _SIZE
                value = after[start : start + _SIZE]
                if value != before[start : start + _SIZE]:
                    bits[(index + 1) >> 3] |= 1 << ((index + 1) & 7)
                    changed.append(value)
        self._before = after
        return b"".join((head, bits, _TIME.pack(when), *changed))


def _as_float32(value: float) -> float:
    """Return infinity for a number outside the range of float32."""
    return math.copysign(math.inf, value) if math.isfinite(value) and abs(value) > _LARGEST else value


@dataclass(slots=True)
class Series:
    """The values of one quantity over time; `times` are nanoseconds since 1970."""

    times: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recording:
    """The content of a file. `problem` says why its end cannot be read; empty if the file is complete."""

    series: Mapping[str, Series]  # by name, in the order of the file
    samples: int
    first: int  # nanoseconds since 1970; 0 without samples
    last: int
    problem: str = ""


class Damaged(Exception):
    """The file cannot be read from this position on."""


def samples(data: bytes) -> Iterator[tuple[int, Sequence[str], Sequence[float]]]:
    """Iterate over time, names and values of each sample. Raises Damaged at an incomplete or invalid document.

    `names` is the same list object for all samples of a schema.
    """
    names: list[str] = []
    values: list[float] = []
    at = 0
    seen_schema = False
    while at < len(data):
        if data[at] == SCHEMA:
            names, at = _schema(data, at)
            values = [0.0] * len(names)
            seen_schema = True
            continue
        if not seen_schema:
            raise Damaged("the file does not begin with a schema")
        when, at = _sample(data, at, values)
        yield when, names, tuple(values)


def _schema(data: bytes, at: int) -> tuple[list[str], int]:
    end = data.find(b"\n", at)
    if end < 0:
        raise Damaged(f"the schema at byte {at} is cut off")
    try:
        names = json.loads(data[at + 1 : end])
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Damaged(f"no schema or sample begins at byte {at}")
    return names, end + 1


def _sample(data: bytes, at: int, values: list[float]) -> tuple[int, int]:
    """Decode a sample into `values`; return its time and the offset of its end."""
    size = (len(values) + 8) // 8
    bits = int.from_bytes(data[at : at + size], "little")
    count = bits.bit_count()
    start = at + size + _TIME.size
    end = start + _SIZE * count
    if bits & 1 or bits >> (len(values) + 1):
        raise Damaged(f"no schema or sample begins at byte {at}")
    if end > len(data):
        raise Damaged(f"the sample at byte {at} is cut off")
    (when,) = _TIME.unpack_from(data, at + size)
    if when <= 0:  # after a power cut, the end of a file may consist of zeros
        raise Damaged(f"zeros from byte {at} on")
    for index in range(len(values)):
        if bits >> (index + 1) & 1:
            (values[index],) = _VALUE.unpack_from(data, start)
            start += _SIZE
    return when, end


def read_ftdc(data: bytes) -> Recording:
    """Decode the content of a file. Never raises: a damaged file is read up to the damage."""
    series: dict[str, Series] = {}
    count, first, last, problem = 0, 0, 0, ""
    current_names: Sequence[str] = ()
    current: list[Series] = []
    try:
        for when, names, values in samples(data):
            if names is not current_names:
                current_names, current = names, [series.setdefault(name, Series()) for name in names]
            for line, value in zip(current, values, strict=True):
                line.times.append(when)
                line.values.append(value)
            count, first, last = count + 1, first or when, when
    except Damaged as damage:
        problem = str(damage)
    return Recording(series, count, first, last, problem)
