"""Incremental parsing of messages that are too large for one step of the event loop.

A call into protobuf's C library cannot be interrupted and holds the interpreter lock, so a thread would not help. This
module cuts the bytes of a large message at field boundaries and merges the pieces into one message, with other tasks
running in between; protobuf defines that the result equals parsing all bytes at once. A field that contains a large
message is cut in the same way. Files (single large values of bytes or text) are not cut: they are copied, which takes
half a millisecond per MiB.

Large messages have restrictions that `FromString` does not have:

- At most `MAX_ENTRIES` entries in one map, because its table is rebuilt in one step as it grows.
- At most `MAX_STRUCTURE` bytes without files, because the objects made of them are freed in one step.
- A singular message field at most once, because the maps of several occurrences would add up without being counted.
- No groups; no published message has any.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.turns import Flow, Turns

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

PIECE: Final = 64 * 1024  # bytes merged in one step; smaller messages are parsed whole
FIELDS: Final = 4 * 1024  # fields scanned in one step
MAX_ENTRIES: Final = 50_000
"""Maximum entries of one map in a message of more than `PIECE` bytes; the table of 400,000 took 110 ms to grow."""
MAX_STRUCTURE: Final = 8 * 1024 * 1024
"""Maximum bytes of one message without files; freeing 4,000,000 values takes 20 ms."""
INFLATED: Final = 256 * 1024  # bytes decompressed in one step

_FILE: Final = 4 * 1024  # a value with more bytes counts as a file
_FEW: Final = 64  # fields inspected to decide whether a message contains little more than files
_SINGLE, _REPEATED, _MAP, _SCALAR_MAP, _VARINTS = range(5)
_COUNTED: Final = frozenset({_SINGLE, _MAP, _SCALAR_MAP})
_VALUE: Final[tuple[str, int | None, Descriptor | None]] = ("", None, None)  # a field without special handling
_VARINT_TYPES: Final = frozenset({3, 4, 5, 8, 13, 14, 17, 18})  # FieldDescriptor.TYPE_INT64, ..., of packed fields
MAX_DEPTH: Final = 100
"""Maximum nesting of messages, as in protobuf's libraries; each object inside a Struct takes three levels."""
TOO_DEEP: Final = (
    f"is nested too deeply: messages may have at most {MAX_DEPTH} levels, and each nested object takes three levels: "
    "use fewer levels"
)

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""Generator that does work in steps and returns its result."""


async def in_turns(steps: Steps[T], turns: Turns, flow: Flow) -> T:
    """Run one step in each turn of `flow` and return the result. No further step runs after cancellation."""
    while True:
        await turns.begin(flow)
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            await turns.end()


async def one_by_one(steps: Steps[T]) -> T:
    """Run `steps` with a checkpoint after each step and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        await trio.lowlevel.checkpoint()


def at_once(steps: Steps[T]) -> T:
    """Run `steps` without checkpoints, in a thread, and return the result; other threads can run between steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def is_large(kind: Any, data: bytes) -> bool:
    """Return True if `merging` must parse `data`. Classes without a descriptor forward messages unparsed."""
    return len(data) > PIECE and hasattr(kind, "DESCRIPTOR")


def merging(kind: Any, data: bytes) -> Steps[Any]:
    """Parse `data` as a message of class `kind`.

    Raises ValueError or protobuf's DecodeError if `data` is malformed, GRPCError (RESOURCE_EXHAUSTED) if it exceeds a
    limit.
    """
    message = kind()
    yield  # receiving a large message counts as a step
    yield from _Merging(data).merge(message, 0, len(data), 1)
    return message


def too_deep(kind: Any, data: bytes) -> Steps[str]:
    """Explain why `data`, which `kind` cannot parse, is nested too deeply; the text continues "the request ...".

    Returns an empty text if `data` does not exceed `MAX_DEPTH`, is malformed, or `kind` has no descriptor.
    """
    stack = [(len(data), _shapes(kind.DESCRIPTOR))] if hasattr(kind, "DESCRIPTOR") else []
    position = walked = 0
    while stack:
        end, shapes = stack[-1]
        if position == end:
            stack.pop()
            continue
        try:
            number, wire, body, position = _field(data, position, end)
        except ValueError:
            return ""
        walked += 1
        if walked % FIELDS == 0:
            yield
        _, _, inner = shapes.get(number, _VALUE) if wire == 2 else _VALUE
        if inner is not None:
            if len(stack) == MAX_DEPTH:
                return f"{kind.DESCRIPTOR.full_name} {TOO_DEEP}"
            stack.append((position, _shapes(inner)))
            position = body
    return ""


def inflating(data: bytes, limit: int) -> Steps[bytes]:
    """Decompress `data` in the format of gzip or zlib: its first bytes say which.

    GRPCError if they are invalid, truncated or longer than `limit` bytes decompressed.
    """
    inflate = zlib.decompressobj(wbits=32 + zlib.MAX_WBITS)
    pieces: list[bytes] = []
    size = position = 0
    try:
        while not inflate.eof and size <= limit and (inflate.unconsumed_tail or position < len(data)):
            rest = inflate.unconsumed_tail or data[position : position + PIECE]
            if not inflate.unconsumed_tail:
                position += PIECE
            pieces.append(inflate.decompress(rest, min(INFLATED, limit + 1 - size)))
            size += len(pieces[-1])
            if not inflate.eof:
                yield
    except zlib.error as error:
        raise GRPCError(Status.INTERNAL, "message is not valid gzip or deflate") from error
    if size > limit:
        text = f"message is larger than the limit of {limit} bytes when decompressed"
        raise GRPCError(Status.RESOURCE_EXHAUSTED, text)
    if not inflate.eof:
        raise GRPCError(Status.INTERNAL, "compressed message is truncated")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


@lru_cache(256)
def _shapes(descriptor: Descriptor) -> dict[int, tuple[str, int | None, Descriptor | None]]:
    """Return name, shape and message type, by field number, of the fields with special handling."""
    shapes = ((field, _shape(field)) for field in descriptor.fields)
    return {field.number: (field.name, shape, field.message_type) for field, shape in shapes if shape is not None}


def _shape(field: FieldDescriptor) -> int | None:
    if field.message_type is not None:
        if field.type != field.TYPE_MESSAGE:
            return None
        if not field.is_repeated:
            return _SINGLE
        if field.message_type.GetOptions().map_entry:
            return _MAP if field.message_type.fields_by_number[2].message_type is not None else _SCALAR_MAP
        return _REPEATED
    return _VARINTS if field.is_repeated and field.type in _VARINT_TYPES else None


class _Merging:
    """Parser of one message."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._room = MAX_STRUCTURE

    def merge(self, message: Any, position: int, end: int, depth: int) -> Iterator[None]:
        """Merge `data[position:end]` into `message`."""
        if depth > MAX_DEPTH:
            raise ValueError(f"more than {MAX_DEPTH} messages inside each other")
        data, shapes = self._data, _shapes(message.DESCRIPTOR)
        counts: dict[int, int] = {}
        start, walked, gathered = position, 0, 0
        while position < end:
            at = position
            number, wire, body, position = _field(data, at, end)
            name, shape, inner = shapes.get(number, _VALUE) if wire == 2 else _VALUE
            if shape in _COUNTED:
                count = counts[number] = counts.get(number, 0) + 1
                _check(message, name, shape, count)
            weight = position - at
            if weight > _FILE and wire == 2:
                weight = _weight(shape, inner, data, body, position, depth)
                if weight > PIECE and shape != _SCALAR_MAP:
                    message.MergeFromString(data[start:at])
                    yield
                    yield from self._enter(message, name, shape, at, body, position, depth)
                    start, walked, gathered = position, 0, 0
                    continue
            walked += 1
            gathered += weight
            if gathered >= PIECE or walked >= FIELDS:
                self._count(gathered)
                message.MergeFromString(data[start:position])
                start, walked, gathered = position, 0, 0
                yield
        self._count(gathered)
        message.MergeFromString(data[start:end])

    def _count(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            text = f"the message has more than {MAX_STRUCTURE >> 20} MiB without files: send it in several messages"
            raise GRPCError(Status.RESOURCE_EXHAUSTED, text)

    def _enter(
        self, message: Any, name: str, shape: int | None, at: int, body: int, end: int, depth: int
    ) -> Iterator[None]:
        """Merge one large field, whose tag is at `at` and whose content is `data[body:end]`."""
        data, inside = self._data, getattr(message, name)
        if shape == _SINGLE:
            inside.SetInParent()
            yield from self.merge(inside, body, end, depth + 1)
        elif shape == _REPEATED:
            yield from self.merge(inside.add(), body, end, depth + 1)
        elif shape == _MAP:
            yield from self._merge_entry(inside, body, end, depth + 1)
        else:
            tag = data[at : _varint(data, at)[1]]
            while body < end:
                cut = min(body + PIECE, end)
                while cut < end and data[cut - 1] & 0x80:
                    cut += 1
                message.MergeFromString(tag + _length(cut - body) + data[body:cut])
                body = cut
                yield

    def _merge_entry(self, entries: Any, position: int, end: int, depth: int) -> Iterator[None]:
        """Parse and set the entry `data[position:end]` of a map of messages."""
        from google.protobuf.unknown_fields import UnknownFieldSet

        data, key, value, walked = self._data, b"", None, 0
        while position < end:
            at = position
            number, wire, body, position = _field(data, at, end)
            if number == 1:
                key = data[at:position]
            elif number == 2 and wire == 2:
                if value is not None:
                    raise ValueError("an entry of a map has two values")
                value = (body, position)
            else:
                raise ValueError(f"an entry of a map has a field {number}")
            walked += 1
            if walked % FIELDS == 0:
                yield
        entry = entries.GetEntryClass().FromString(key)
        if len(UnknownFieldSet(entry)):
            raise ValueError("the key of a map has a wrong type")
        name = entry.key
        if name in entries:
            del entries[name]
        inside = entries[name]
        if value is not None:
            yield from self.merge(inside, *value, depth)


def _check(message: Any, name: str, shape: int | None, count: int) -> None:
    if shape == _SINGLE and count > 1:
        raise ValueError(f"{message.DESCRIPTOR.full_name}.{name} occurs twice")
    if shape != _SINGLE and count > MAX_ENTRIES:
        text = f"{message.DESCRIPTOR.full_name}.{name} has more than {MAX_ENTRIES:,} entries: send fewer, or use a list"
        raise GRPCError(Status.RESOURCE_EXHAUSTED, text)


def _weight(shape: int | None, inner: Descriptor | None, data: bytes, position: int, end: int, depth: int) -> int:
    """Return the bytes without files of a field's content `data[position:end]`; all bytes if it has many fields."""
    if shape is None:
        return 0
    if inner is None or shape not in (_SINGLE, _REPEATED) or depth > MAX_DEPTH:
        return end - position
    whole, weight, shapes = end - position, 0, _shapes(inner)
    for _ in range(_FEW):
        if position == end:
            return weight
        at = position
        number, wire, body, position = _field(data, at, end)
        size = position - at
        if size > _FILE and wire == 2:
            _, kind, inside = shapes.get(number, _VALUE)
            size = _weight(kind, inside, data, body, position, depth + 1)
        weight += size
    return whole


def _field(data: bytes, position: int, end: int) -> tuple[int, int, int, int]:
    """Return number, wire type, content start and end of the field at `position`; ValueError if it is malformed."""
    try:
        tag = data[position]
        position += 1
        if tag & 0x80:
            tag, position = _varint(data, position - 1)
        wire = tag & 7
        body = position
        if wire == 2:
            size = data[position]
            position += 1
            if size & 0x80:
                size, position = _varint(data, position - 1)
            body = position
            position += size
        elif wire == 0:
            while data[position] & 0x80:
                position += 1
            position += 1
        elif wire == 1:
            position += 8
        elif wire == 5:
            position += 4
        else:
            raise ValueError(f"a field of wire type {wire}")
    except IndexError:
        raise ValueError("cut off") from None
    if position > end:
        raise ValueError("cut off")
    return tag >> 3, wire, body, position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Decode the tag or length at `position`, of at most five bytes; return it and the position after it."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("a tag or length of more than five bytes")


def _length(size: int) -> bytes:
    out = bytearray()
    while size >= 0x80:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out)
