"""Items of an upload, read from their messages: readings as rows to be stored, or contents of files.

Readings of one method nearly always have the same keys and differ only in their numbers. The first of them is converted
by the rules; for those that equal it except for numbers, the numbers are put into its JSON, which needs no objects for
their values. The text is the same, character by character.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, ClassVar, Final, TypeAlias

import msgspec
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from cloud.domain.data.readings import text_of
from cloud.services.data.data_messages import SensorData
from cloud.values.times import stored
from rpc.api import FitError, read_struct

Captured: TypeAlias = tuple[int | None, int | None, str]
"""A reading: stored forms of the times of request and receipt, None if absent, and its data as JSON."""

TOGETHER: Final = 100  # readings whose numbers are encoded in one step
SHAPES: Final = 8  # shapes of readings without a like that an upload may have before all others are read by the rules
REWARD: Final = 8  # readings alike that allow one more
LARGEST: Final = 4096  # bytes of a reading that may have a shape
REMEMBERED: Final = 256  # shapes of all uploads

_FIRST: Final = stored(datetime.min.replace(tzinfo=UTC))
_LAST: Final = stored(datetime.max.replace(tzinfo=UTC))
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class UploadContents:
    """Items of an upload: `items` if one of them has the content of a file, otherwise only `readings`."""

    items: Sequence[SensorData] = ()
    readings: Sequence[Captured] = ()

    ITEM: ClassVar = SensorData

    @classmethod
    def read(cls, messages: Sequence[Any], by_rules: Callable[[Any], SensorData]) -> UploadContents:
        """Convert the messages of an upload, with `by_rules` for a single one; FitError if one does not fit."""
        readings = _readings(messages, by_rules)
        if readings is None:
            return cls(items=[_converted(by_rules, messages, index) for index in range(len(messages))])
        return cls(readings=readings)


def _readings(messages: Sequence[Any], by_rules: Callable[[Any], SensorData]) -> list[Captured] | None:
    """Return the readings; None if there is the content of a file, which no message of a shape has."""
    readings: list[Captured] = []
    left, count = SHAPES, len(messages)
    while (position := len(readings)) < count:
        if messages[position].HasField("binary"):
            return None
        readings.append(_captured(_converted(by_rules, messages, position)))
        if not left or position + 1 == count:
            continue
        left -= 1
        shape = _shape_of(messages[position])
        while shape is not None and (batch := messages[len(readings) : len(readings) + TOGETHER]):
            alike = shape.read(batch)
            readings += alike
            left += len(alike) // REWARD
            if len(alike) < len(batch):
                break
    return readings


def _converted(by_rules: Callable[[Any], SensorData], messages: Sequence[Any], index: int) -> SensorData:
    try:
        return by_rules(messages[index])
    except FitError as error:
        error.inside(str(index))
        raise


def _captured(item: SensorData) -> Captured:
    times = item.metadata
    requested = times.time_requested if times is not None else None
    received = times.time_received if times is not None else None
    return (
        None if requested is None else stored(requested),
        None if received is None else stored(received),
        text_of(item.struct or {}),
    )


@dataclass(frozen=True, slots=True)
class _Shape:
    """What readings have in common that differ only in their numbers and times: all bytes but these."""

    size: int  # bytes of the field `struct`, which is at the end of a message
    mask: int  # bits that are the same in all
    fixed: int  # these bits
    numbers: struct.Struct  # the field, with the numbers in it
    order: tuple[int, ...]  # the numbers in the order of the text: keys that begin with another one come later there
    text: str  # the data as JSON, with %s for each number

    def read(self, messages: Iterable[Any]) -> list[Captured]:
        """Return the readings in the first messages of this shape, which have both times and only finite numbers."""
        size, mask, fixed = self.size, self.mask, self.fixed
        times: list[tuple[int, int]] = []
        fields: list[bytes] = []
        moment = Timestamp()
        for message in messages:
            data = message.SerializeToString(deterministic=True)
            field = data[-size:]
            if int.from_bytes(field, "little") & mask != fixed:
                break
            both = _times(data, len(data) - size, moment)
            if both is None:
                break
            times.append(both)
            fields.append(field)
        return [(*both, text) for both, text in zip(times, self._texts(b"".join(fields)), strict=False)]

    def _texts(self, fields: bytes) -> Iterator[str]:
        """Yield the texts of readings until the first with a number that is not finite, which has another form."""
        width, order, template = len(self.order), self.order, self.text
        if not width:
            yield from repeat(template % (), len(fields) // self.size)
            return
        numbers = _encode([*chain.from_iterable(self.numbers.iter_unpack(fields))]).decode()[1:-1].split(",")
        if "null" in numbers:
            del numbers[numbers.index("null") // width * width :]
        each = zip(*[numbers[place::width] for place in order], strict=True)
        yield from map(template.__mod__, each)


def _times(data: bytes, end: int, moment: Any) -> tuple[int, int] | None:
    """Return the two times in the field `metadata`, which is `data[:end]`; None if it has not just two times.

    `moment` is an object to parse them with.
    """
    try:
        if data[0] != _METADATA or data[1] > 127 or data[1] + 2 != end or data[2] != _REQUESTED:
            return None
        middle = 4 + data[3]
        if data[middle] != _RECEIVED or middle + 2 + data[middle + 1] != end:
            return None
    except IndexError:
        return None
    moment.ParseFromString(data[4:middle])
    requested = moment.seconds * 1_000_000 + moment.nanos // 1000
    moment.ParseFromString(data[middle + 2 : end])
    received = moment.seconds * 1_000_000 + moment.nanos // 1000
    return (requested, received) if _FIRST <= requested <= _LAST and _FIRST <= received <= _LAST else None


_METADATA, _REQUESTED, _RECEIVED, _STRUCT_FIELD = 0x0A, 0x0A, 0x12, b"\x12"  # tags: SensorData, SensorMetadata


def _shape_of(message: Any) -> _Shape | None:
    """Return the shape of a reading; None if it is large, or if its JSON cannot be made from its numbers."""
    data = message.struct.SerializeToString(deterministic=True)
    places = _places(data) if len(data) <= LARGEST else None
    if places is None:
        return None
    fixed = bytearray(data)
    for place in places:
        fixed[place : place + 8] = bytes(8)
    return _shape(bytes(fixed), places)


@lru_cache(REMEMBERED)
def _shape(fixed: bytes, places: tuple[int, ...]) -> _Shape | None:
    text = _text(fixed, places, first := 1_000_000.5)
    other = _text(fixed, places, second := 2_000_000.5)
    marks = sorted((text.find(str(first + index)), index) for index in range(len(places)))
    pieces, after = [], 0
    for place, _ in marks:
        pieces.append(text[after:place].replace("%", "%%"))
        after = place + len(str(first))
    template = "%s".join([*pieces, text[after:].replace("%", "%%")])
    # Marks have the same length, so the texts are equal only if each mark is where its number is.
    if (
        "null" in text
        or (marks and marks[0][0] < 0)
        or template % tuple(str(second + index) for _, index in marks) != other
    ):
        return None
    head = _STRUCT_FIELD + _length(len(fixed))
    mask = bytearray(b"\xff" * (len(head) + len(fixed)))
    layout, after = "<", 0
    for place in places:
        start = len(head) + place
        mask[start : start + 8] = bytes(8)
        layout += f"{start - after}xd"
        after = start + 8
    layout += f"{len(mask) - after}x"
    return _Shape(
        len(mask),
        int.from_bytes(mask, "little"),
        int.from_bytes(head + fixed, "little"),
        struct.Struct(layout),
        tuple(index for _, index in marks),
        template,
    )


def _text(fixed: bytes, places: Iterable[int], first: float) -> str:
    """Return the JSON, by the rules, of a reading with `first` and the numbers after it as its numbers."""
    data = bytearray(fixed)
    for index, place in enumerate(places):
        struct.pack_into("<d", data, place, first + index)
    return text_of(read_struct(Struct.FromString(bytes(data))))


def _length(size: int) -> bytes:
    return bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])


_BYTE, _NUMBER, _TEXT = "byte", "number", "text"
_VALUE: dict[int, Any] = {0x08: _BYTE, 0x11: _NUMBER, 0x1A: _TEXT, 0x20: _BYTE}  # google/protobuf/struct.proto
_ENTRY: Final[dict[int, Any]] = {0x0A: _TEXT, 0x12: _VALUE}
_STRUCT: Final[dict[int, Any]] = {0x0A: _ENTRY}
_VALUE |= {0x2A: _STRUCT, 0x32: {0x0A: _VALUE}}


def _places(data: bytes) -> tuple[int, ...] | None:
    """Return where a Struct of at most LARGEST bytes has its numbers; None if it has unknown fields."""
    places = []
    inside: list[tuple[int, dict[int, Any]]] = [(len(data), _STRUCT)]
    position = 0
    while inside:
        end, fields = inside[-1]
        if position == end:
            inside.pop()
            continue
        kind = fields.get(data[position])
        position += 1
        if kind is None or (kind is _BYTE and data[position] > 127):
            return None
        if kind is _NUMBER:
            places.append(position)
            position += 8
        elif kind is _BYTE:
            position += 1
        else:
            size = data[position]
            position += 1
            if size > 127:
                size = size & 127 | data[position] << 7
                position += 1
            if kind is _TEXT:
                position += size
            else:
                inside.append((position + size, kind))
    return tuple(places)
