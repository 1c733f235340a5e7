"""A strict reader of BSON that strangers have sent: the stages of an aggregation. Pure.

Everything is checked against the specification (bsonspec.org, version 1.1), and depth and number of values are bounded.
Types that have no meaning in a query of readings, such as code and object ids, are refused by name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cloud.domain.queries.statement import Invalid

MAX_DEPTH: Final = 32
MAX_VALUES: Final = 5000  # in one document
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_REMEDY: Final = "send each stage as one BSON document, as the official SDKs do"
_REFUSED: Final = {
    0x05: "binary", 0x06: "undefined", 0x07: "object id", 0x0C: "reference", 0x0D: "code", 0x0E: "symbol",
    0x0F: "code with scope", 0x11: "timestamp", 0x13: "decimal", 0x7F: "greatest key", 0xFF: "least key",
}  # fmt: skip
"""Types that are not read, and their names."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression with its options."""

    text: str
    options: str


def read(content: bytes) -> dict[str, Any]:
    """Return a document: None, bool, int, float, str, datetime in UTC, Pattern, lists, mappings. Invalid."""
    reader = _Reader(content)
    document: dict[str, Any] = reader.document(0)
    if reader.place != len(content):
        raise _broken("bytes follow the document")
    return document


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._values = 0
        self.place = 0

    def document(self, depth: int, *, array: bool = False) -> Any:
        if depth > MAX_DEPTH:
            raise Invalid(f"a stage has more than {MAX_DEPTH} levels", "nest less")
        end = self.place + self._number("<i")
        if not self.place + 1 <= end <= len(self._content):
            raise _broken("the length of a document is wrong")
        entries: dict[str, Any] = {}
        while (kind := self._take(1)[0]) != 0:
            name = self._name()
            if name in entries:
                raise Invalid(f"a stage has the name {name[:60]!r} twice", "send it once")
            entries[name] = self._value(kind, depth)
            self._values += 1
            if self._values > MAX_VALUES:
                raise Invalid(f"a stage has more than {MAX_VALUES} values", "send less")
        if self.place != end:
            raise _broken("the length of a document is wrong")
        if array and list(entries) != [str(number) for number in range(len(entries))]:
            raise _broken("a list is not numbered")
        return list(entries.values()) if array else entries

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (0x03, 0x04):
            return self.document(depth + 1, array=kind == 0x04)
        if kind == 0x0B:
            return Pattern(self._name(), self._name())
        read = _READERS.get(kind)
        if read is None:
            raise Invalid(f"a value of the type {_REFUSED.get(kind, hex(kind))} is not supported", "use another type")
        return read(self)

    def text(self) -> str:
        size = self._number("<i")
        if size < 1:
            raise _broken("the length of a text is wrong")
        content = self._take(size)
        if content[-1]:
            raise _broken("a text does not end")
        return _decoded(content[:-1])

    def flag(self) -> bool:
        (value,) = self._take(1)
        if value > 1:
            raise _broken("a boolean is neither 0 nor 1")
        return value == 1

    def time(self) -> datetime:
        try:
            return _EPOCH + timedelta(milliseconds=self._number("<q"))
        except OverflowError:
            raise Invalid("a time is outside of the years 1 to 9999", "use another time") from None

    def number(self, form: str) -> Callable[[], Any]:
        return lambda: self._number(form)

    def _number(self, form: str) -> Any:
        (value,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return value

    def _name(self) -> str:
        end = self._content.find(b"\0", self.place)
        if end < 0:
            raise _broken("a name does not end")
        name, self.place = _decoded(self._content[self.place : end]), end + 1
        return name

    def _take(self, size: int) -> bytes:
        content = self._content[self.place : self.place + size]
        if len(content) != size:
            raise _broken("it ends too early")
        self.place += size
        return content


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _broken("a text is not UTF-8") from None


def _broken(what: str) -> Invalid:
    return Invalid(f"a stage is not valid BSON: {what}", _REMEDY)


_READERS: Final[dict[int, Callable[[_Reader], Any]]] = {
    0x01: lambda reader: reader.number("<d")(),
    0x02: _Reader.text,
    0x08: _Reader.flag,
    0x09: _Reader.time,
    0x0A: lambda reader: None,
    0x10: lambda reader: reader.number("<i")(),
    0x12: lambda reader: reader.number("<q")(),
}
