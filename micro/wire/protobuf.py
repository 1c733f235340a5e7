"""A protobuf coder that is driven by the tables in messages: a message is a dict by the names of its fields. Pure.

A decoded message has all its fields: absent ones are the default of their kind, None for a message or an optional
field, an empty list or dict for a repeated one. A Struct is a dict, and a Value any value of JSON.
"""

import struct

from micro.wire.faults import EXHAUSTED, INVALID, CallFailure
from micro.wire.messages import MESSAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BOOL, UINT, INT, DOUBLE, FLOAT, STRING, BYTES, MESSAGE, STRUCT, VALUE = 0, 1, 2, 4, 5, 6, 7, 8, 9, 10
REPEATED, OPTIONAL, MAP = 16, 32, 64
DEFAULTS = (False, 0, 0, 0, 0.0, 0.0, "", b"", None, None, None)
WIRE = (0, 0, 0, 0, 1, 5, 2, 2, 2, 2, 2)
"""Wire type of each kind."""

DEPTH = 8  # of messages and values within each other
ITEMS = 256  # of a message, so that a small request cannot become a large dict


def _bad(text: str) -> CallFailure:
    return CallFailure(INVALID, f"the request is not a valid message: {text}")


class Reader:
    """Reads messages from `data`."""

    def __init__(self, data: "bytes | bytearray", start: int = 0) -> None:
        self._data = data
        self._at = start
        self._items = ITEMS

    def message(self, number: int, end: int, depth: int = DEPTH) -> "dict[str, Any]":
        """Read the message `number` up to `end`."""
        fields = MESSAGES[number]
        out: dict[str, Any] = {}
        for _, name, kind, _ in fields:
            if kind & MAP:
                out[name] = {}
            elif kind & REPEATED:
                out[name] = []
            else:
                out[name] = None if kind & OPTIONAL else DEFAULTS[kind & 15]
        if depth == 0:
            raise _bad("it is nested too deeply")
        while self._at < end:
            tag = self._varint(end)
            for field in fields:
                if field[0] == tag >> 3:
                    self._field(out, field, tag & 7, end, depth)
                    break
            else:
                self._skip(tag, end)
        return out

    def _field(
        self, out: "dict[str, Any]", field: "tuple[int, str, int, int]", wire: int, end: int, depth: int
    ) -> None:
        _, name, kind, inner = field
        base = kind & 15
        if kind & (REPEATED | MAP):
            self._count()
        if wire == 2 and kind & REPEATED and WIRE[base] != 2:  # packed
            stop = self._length(end)
            while self._at < stop:
                self._count()
                out[name].append(self._value(base, inner, stop, depth))
            return
        if wire != WIRE[base]:
            raise _bad(f"{name} has the wrong type")
        if kind & MAP:
            entry = self._value(MESSAGE, inner, end, depth)
            out[name][entry["key"]] = entry["value"]
        elif kind & REPEATED:
            out[name].append(self._value(base, inner, end, depth))
        else:
            out[name] = self._value(base, inner, end, depth)

    def _count(self) -> None:
        self._items -= 1
        if self._items < 0:
            raise CallFailure(EXHAUSTED, f"the request has more than {ITEMS} items")

    def _value(self, base: int, inner: int, end: int, depth: int) -> "Any":
        if base <= INT:
            number = self._varint(end)
            if base == BOOL:
                return number != 0
            return number - (1 << 64) if base == INT and number >= 1 << 63 else number
        if base <= FLOAT:
            return self._number(base, end)
        stop = self._length(end)
        start = self._at
        if base == MESSAGE:
            return self.message(inner, stop, depth - 1)
        if base == STRUCT:
            return self._struct(stop, depth - 1)
        if base == VALUE:
            return self._json(stop, depth - 1)
        self._at = stop
        piece = bytes(self._data[start:stop])
        if base == BYTES:
            return piece
        try:
            return str(piece, "utf-8")
        except (UnicodeError, ValueError):
            raise _bad("a text is not UTF-8") from None

    def _number(self, base: int, end: int) -> float:
        size = 8 if base == DOUBLE else 4
        start = self._at
        self._at += size
        if self._at > end:
            raise _bad("it is cut off")
        number: float = struct.unpack("<d" if size == 8 else "<f", self._data[start : start + size])[0]
        return number

    def _struct(self, end: int, depth: int) -> "dict[str, Any]":
        out: dict[str, Any] = {}
        if depth == 0:
            raise _bad("it is nested too deeply")
        while self._at < end:
            tag = self._varint(end)
            if tag != 10:
                self._skip(tag, end)
                continue
            stop = self._length(end)
            key, value = "", None
            while self._at < stop:
                tag = self._varint(stop)
                if tag == 10:
                    key = self._value(STRING, 0, stop, depth)
                elif tag == 18:
                    value = self._json(self._length(stop), depth)
                else:
                    self._skip(tag, stop)
            self._count()
            out[key] = value
        return out

    def _json(self, end: int, depth: int) -> "Any":
        out: Any = None
        if depth <= 0:
            raise _bad("it is nested too deeply")
        while self._at < end:
            tag = self._varint(end)
            if tag == 8:
                self._varint(end)
                out = None
            elif tag == 17:
                out = self._number(DOUBLE, end)
            elif tag == 26:
                out = self._value(STRING, 0, end, depth)
            elif tag == 32:
                out = self._varint(end) != 0
            elif tag == 42:
                out = self._struct(self._length(end), depth - 1)
            elif tag == 50:
                out = self._list(self._length(end), depth - 1)
            else:
                self._skip(tag, end)
        return out

    def _list(self, end: int, depth: int) -> "list[Any]":
        out = []
        while self._at < end:
            tag = self._varint(end)
            if tag == 10:
                self._count()
                out.append(self._json(self._length(end), depth))
            else:
                self._skip(tag, end)
        return out

    def _length(self, end: int) -> int:
        size = self._varint(end)
        stop = self._at + size
        if stop > end:
            raise _bad("it is cut off")
        return stop

    def _varint(self, end: int) -> int:
        value = shift = 0
        data, at = self._data, self._at
        while True:
            if at >= end:
                raise _bad("it is cut off")
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                self._at = at
                return value
            shift += 7
            if shift > 63:
                raise _bad("a number is too long")

    def _skip(self, tag: int, end: int) -> None:
        wire = tag & 7
        if tag < 8:
            raise _bad("a field has the number 0")
        if wire == 0:
            self._varint(end)
        elif wire == 1:
            self._at += 8
        elif wire == 5:
            self._at += 4
        elif wire == 2:
            self._at = self._length(end)
        else:
            raise _bad("a field has an unknown type")
        if self._at > end:
            raise _bad("it is cut off")


def decode(number: int, data: "bytes | bytearray", start: int = 0) -> "dict[str, Any]":
    """Decode the message `number` in `data` from `start` on. CallFailure (INVALID, EXHAUSTED) if that fails."""
    return Reader(data, start).message(number, len(data))


def encode(number: int, values: "dict[str, Any]") -> bytearray:
    """Encode a message from the values of its fields; those that are missing or None are left out.

    The value of a message in it may also be bytes, which have been encoded before.
    """
    out = bytearray()
    for key, name, kind, inner in MESSAGES[number]:
        value = values.get(name)
        if value is None:
            continue
        base = kind & 15
        if kind & MAP:
            for item in value:
                _put(out, key, MESSAGE, inner, {"key": item, "value": value[item]})
        elif kind & REPEATED:
            for item in value:
                _put(out, key, base, inner, item)
        else:
            _put(out, key, base, inner, value)
    return out


def _put(out: bytearray, key: int, base: int, inner: int, value: "Any") -> None:
    put_varint(out, key << 3 | WIRE[base])
    if base <= INT:
        put_varint(out, int(value))
    elif base == DOUBLE:
        out += struct.pack("<d", value)
    elif base == FLOAT:
        out += struct.pack("<f", value)
    elif base == MESSAGE:
        _put_piece(out, value if isinstance(value, bytes) else encode(inner, value))
    elif base == STRUCT:
        _put_piece(out, _encode_struct(value))
    elif base == VALUE:
        _put_piece(out, _encode_json(value))
    else:
        _put_piece(out, value.encode() if base == STRING else value)


def put_varint(out: bytearray, value: int) -> None:
    """Append a number; negative ones have 64 bits."""
    if value < 0:
        value += 1 << 64
    while value > 127:
        out.append(128 | value & 127)
        value >>= 7
    out.append(value)


def _put_piece(out: bytearray, piece: "bytes | bytearray") -> None:
    put_varint(out, len(piece))
    out += piece


def _encode_struct(values: "dict[str, Any]") -> bytearray:
    out = bytearray()
    for key in values:
        entry = bytearray(b"\x0a")
        _put_piece(entry, str(key).encode())
        entry.append(18)
        _put_piece(entry, _encode_json(values[key]))
        out.append(10)
        _put_piece(out, entry)
    return out


def _encode_json(value: "Any") -> bytearray:
    out = bytearray()
    if value is None:
        out += b"\x08\x00"
    elif value is True or value is False:
        out.append(32)
        out.append(int(value))
    elif isinstance(value, (int, float)):
        out.append(17)
        out += struct.pack("<d", value)
    elif isinstance(value, str):
        out.append(26)
        _put_piece(out, value.encode())
    elif isinstance(value, dict):
        out.append(42)
        _put_piece(out, _encode_struct(value))
    else:
        out.append(50)
        items = bytearray()
        for item in value:
            items.append(10)
            _put_piece(items, _encode_json(item))
        _put_piece(out, items)
    return out
