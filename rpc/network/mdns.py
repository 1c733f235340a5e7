"""Codec for multicast DNS messages (RFC 1035 4, RFC 6762, RFC 2782, RFC 6763 6), safe with hostile input. Pure."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

GROUP_V4: Final = "224.0.0.251"  # RFC 6762 3
GROUP_V6: Final = "ff02::fb"
PORT: Final = 5353

A: Final = 1
PTR: Final = 12
TXT: Final = 16
AAAA: Final = 28
SRV: Final = 33
NSEC: Final = 47
ANY: Final = 255
INTERNET: Final = 1  # record class

MAX_MESSAGE: Final = 9000  # bytes; RFC 6762 17
MAX_NAME: Final = 255  # bytes on the wire; RFC 1035 2.3.4
MAX_LABEL: Final = 63
MAX_RECORDS: Final = 512  # in one message; more than 9,000 bytes of useful records can contain

_HEADER: Final = struct.Struct(">HHHHHH")
_QUESTION: Final = struct.Struct(">HH")
_RECORD: Final = struct.Struct(">HHIH")
_SRV: Final = struct.Struct(">HHH")
_RESPONSE: Final = 0x8400  # QR and AA
_QR: Final = 0x8000
_OPCODE_RCODE: Final = 0x780F  # must be 0; RFC 6762 18.3 and 18.11
_TC: Final = 0x0200
_TOP: Final = 0x8000  # class bit: cache-flush in records, unicast response in questions; RFC 6762 5.4 and 10.2

Name: TypeAlias = tuple[str, ...]
"""Labels without the root; a label may contain any bytes, including dots. Compare names by `key`."""


class MdnsError(ValueError):
    """Invalid message, or a value that cannot be encoded."""


@dataclass(frozen=True, slots=True)
class Service:
    """SRV data: the location of a service."""

    port: int
    target: Name
    priority: int = 0
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Present:
    """NSEC data as restricted by RFC 6762 6.1: the record types of a name, all below 256."""

    types: frozenset[int]


Data: TypeAlias = IPv4Address | IPv6Address | Name | Service | Present | tuple[bytes, ...] | bytes
"""Data of A, AAAA, PTR, SRV, NSEC and TXT records; raw bytes for other types."""


@dataclass(frozen=True, slots=True)
class Question:
    """Question of a query; `unicast` requests a unicast response."""

    name: Name
    type: int
    unicast: bool = False


@dataclass(frozen=True, slots=True)
class DnsRecord:
    """Resource record; `flush` (cache-flush) tells receivers to discard other records of the same name and type."""

    name: Name
    type: int
    data: Data
    ttl: int  # seconds; 0 announces removal
    flush: bool = False

    def same(self, other: DnsRecord) -> bool:
        """Return True if both records are equal except for `ttl` and `flush`."""
        return key(self.name) == key(other.name) and self.type == other.type and _folded(self) == _folded(other)


@dataclass(frozen=True, slots=True)
class Message:
    """Query or response."""

    questions: tuple[Question, ...] = ()
    answers: tuple[DnsRecord, ...] = ()
    authorities: tuple[DnsRecord, ...] = ()
    additionals: tuple[DnsRecord, ...] = ()
    response: bool = False
    truncated: bool = False  # more known answers follow
    id: int = 0


def key(name: Name) -> Name:
    """Return the comparison key of a name, which ignores the case of ASCII letters; RFC 6762 16."""
    return tuple("".join(c.lower() if c.isascii() else c for c in label) for label in name)


def _folded(record: DnsRecord) -> Data:
    data = record.data
    if isinstance(data, Service):
        return Service(data.port, key(data.target), data.priority, data.weight)
    return key(data) if record.type == PTR and isinstance(data, tuple) else data  # type: ignore[arg-type]


# ---- encoding


def encode(message: Message) -> bytes:
    """Encode a message with compressed names. MdnsError if a name, label or text has an invalid length."""
    out = _Writer()
    sections = (message.answers, message.authorities, message.additionals)
    flags = (_RESPONSE if message.response else 0) | (_TC if message.truncated else 0)
    out.data += _HEADER.pack(message.id, flags, len(message.questions), *map(len, sections))
    for question in message.questions:
        out.name(question.name)
        out.data += _QUESTION.pack(question.type, INTERNET | (_TOP if question.unicast else 0))
    for section in sections:
        for record in section:
            out.record(record)
    return bytes(out.data)


class _Writer:
    def __init__(self) -> None:
        self.data = bytearray()
        self._positions: dict[tuple[bytes, ...], int] = {}

    def name(self, name: Name, *, compress: bool = True) -> None:
        labels = tuple(label.encode("utf-8", "surrogateescape") for label in name)
        if sum(len(label) + 1 for label in labels) + 1 > MAX_NAME:
            raise MdnsError(f"{'.'.join(name)} is longer than {MAX_NAME} bytes")
        for index, label in enumerate(labels):
            if compress and (place := self._positions.get(labels[index:])) is not None:
                self.data += struct.pack(">H", 0xC000 | place)
                return
            if not 0 < len(label) <= MAX_LABEL:
                raise MdnsError(f"{name[index]!r} is not a label of 1 to {MAX_LABEL} bytes")
            if len(self.data) < 0x4000:
                self._positions.setdefault(labels[index:], len(self.data))
            self.data.append(len(label))
            self.data += label
        self.data.append(0)

    def record(self, record: DnsRecord) -> None:
        self.name(record.name)
        self.data += _RECORD.pack(record.type, INTERNET | (_TOP if record.flush else 0), record.ttl, 0)
        begin = len(self.data)
        self._put(record)
        struct.pack_into(">H", self.data, begin - 2, len(self.data) - begin)

    def _put(self, record: DnsRecord) -> None:
        data = record.data
        match data:
            case IPv4Address() | IPv6Address():
                self.data += data.packed
            case Service():
                self.data += _SRV.pack(data.priority, data.weight, data.port)
                self.name(data.target, compress=False)  # unicast resolvers do not expect compression here; RFC 2782
            case Present():
                self.name(record.name, compress=False)  # RFC 4034 4.1.1
                self.data += _bitmap(data.types)
            case bytes():
                self.data += data
            case _ if record.type == PTR:
                self.name(data)  # type: ignore[arg-type]
            case _:
                self.data += _texts(data)  # type: ignore[arg-type]


def _bitmap(types: frozenset[int]) -> bytes:
    bits = bytearray(max(types, default=0) // 8 + 1)
    for number in types:
        bits[number // 8] |= 0x80 >> number % 8
    return bytes((0, len(bits))) + bytes(bits)


def _texts(texts: Sequence[bytes]) -> bytes:
    if any(len(text) > 255 for text in texts):
        raise MdnsError("a text is longer than 255 bytes")
    return b"".join(bytes((len(text),)) + text for text in texts) or b"\0"  # RFC 6763 6.1: at least one, empty, text


# ---- decoding


def decode(data: bytes) -> Message:
    """Decode a message; MdnsError if it is invalid. Records of classes other than Internet are omitted."""
    if not _HEADER.size <= len(data) <= MAX_MESSAGE:
        raise MdnsError(f"a message of {len(data)} bytes")
    number, flags, *counts = _HEADER.unpack_from(data)
    if flags & _OPCODE_RCODE:
        raise MdnsError("a message that is neither a query nor a response")
    if sum(counts) > MAX_RECORDS:
        raise MdnsError(f"a message of {sum(counts)} questions and records")
    reader = _Reader(data)
    questions = tuple(question for _ in range(counts[0]) if (question := reader.question()) is not None)
    answers, authorities, additionals = (
        tuple(record for _ in range(count) if (record := reader.record()) is not None) for count in counts[1:]
    )
    return Message(questions, answers, authorities, additionals, bool(flags & _QR), bool(flags & _TC), number)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = _HEADER.size

    def question(self) -> Question | None:
        name = self._name()
        kind, cls = self._unpack(_QUESTION)
        return Question(name, kind, bool(cls & _TOP)) if cls & ~_TOP in (INTERNET, ANY) else None

    def record(self) -> DnsRecord | None:
        name = self._name()
        kind, cls, ttl, length = self._unpack(_RECORD)
        end = self._at + length
        if end > len(self._data):
            raise MdnsError("a record ends after the message")
        data = self._read(kind, end)
        self._at = end
        return DnsRecord(name, kind, data, ttl, bool(cls & _TOP)) if cls & ~_TOP == INTERNET else None

    def _read(self, kind: int, end: int) -> Data:
        raw = self._data[self._at : end]
        if kind in (A, AAAA):
            if len(raw) != (4 if kind == A else 16):
                raise MdnsError("an address of a wrong length")
            return IPv4Address(raw) if kind == A else IPv6Address(raw)
        if kind == PTR:
            return self._name(end)
        if kind == SRV:
            priority, weight, port = self._unpack(_SRV, end)
            return Service(port, self._name(end), priority, weight)
        return _split(raw) if kind == TXT else raw

    def _unpack(self, layout: struct.Struct, end: int | None = None) -> tuple[int, ...]:
        if self._at + layout.size > (len(self._data) if end is None else end):
            raise MdnsError("the message ends too early")
        fields = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return fields

    def _name(self, end: int | None = None) -> Name:
        """Read a name. Compression pointers must point backwards, so that reading terminates."""
        data, at, length = self._data, self._at, 1
        labels: list[str] = []
        jumped = False
        before = at
        while True:
            if at >= len(data):
                raise MdnsError("a name ends after the message")
            size = data[at]
            if size >= 0xC0:
                if at + 2 > len(data):
                    raise MdnsError("a name ends after the message")
                target = int.from_bytes(data[at : at + 2], "big") & 0x3FFF
                if not jumped:
                    self._at = at + 2
                    jumped = True
                if target >= before:
                    raise MdnsError("a compression pointer that points forwards")
                at = before = target
                continue
            if size > MAX_LABEL:
                raise MdnsError("a label of an unknown kind")
            at += 1
            if size == 0:
                break
            label = data[at : at + size]
            length += size + 1
            if len(label) != size or length > MAX_NAME:
                raise MdnsError("a name that is too long")
            labels.append(label.decode("utf-8", "surrogateescape"))
            at += size
        if not jumped:
            self._at = at
        if end is not None and self._at > end:
            raise MdnsError("a name ends after its record")
        return tuple(labels)


def _split(raw: bytes) -> tuple[bytes, ...]:
    texts, at = [], 0
    while at < len(raw):
        size = raw[at]
        text = raw[at + 1 : at + 1 + size]
        if len(text) != size:
            raise MdnsError("a text ends after its record")
        texts.append(text)
        at += 1 + size
    return tuple(text for text in texts if text)


def flags_of(texts: Sequence[bytes]) -> Mapping[str, str | None]:
    """Return the keys of TXT data with their values, None for a key without value; RFC 6763 6.4.

    Keys are lower-case; the first occurrence of a key counts.
    """
    flags: dict[str, str | None] = {}
    for text in texts:
        name, equals, value = text.decode("utf-8", "replace").partition("=")
        if name:
            flags.setdefault(name.lower(), value if equals else None)
    return flags
