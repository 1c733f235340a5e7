"""HPACK (RFC 7541): a stateful decoder and a stateless encoder. Pure."""

from __future__ import annotations

import re
from typing import Final

from rpc.carrier import Headers
from rpc.errors import COMPRESSION_ERROR, ENHANCE_YOUR_CALM, PROTOCOL_ERROR, ConnectionFault, HeadersTooLarge
from rpc.http2.codec import huffman

# Appendix A
STATIC_TABLE: Final = (
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
)

_STATIC: Final = (("", ""), *STATIC_TABLE)
_FIRST: Final = len(_STATIC)  # index of the newest entry of the dynamic table
_OVERHEAD: Final = 32  # bytes added to the size of each entry
_SHORT_INDICES: Final = re.compile(rb"[\x81-\xfe]+").match  # indexed fields of one byte each
_LONGEST_CODE: Final = 30  # bits of a Huffman code
_LENGTHS: Final = 2 * 6  # maximum bytes of the lengths of two strings
_LONGEST_INTEGER: Final = 28  # bits after the prefix; enough for every permitted length and size


class Decoder:
    """Decoder of the header blocks that arrive on one connection, in order.

    `max_list` limits the uncompressed header list, counting 32 additional bytes for each field. `table_size` is the
    maximum size of the dynamic table that our SETTINGS announce.
    """

    __slots__ = ("_dynamic", "_limit", "_max_list", "_max_size", "_size")

    def __init__(self, *, table_size: int, max_list: int) -> None:
        self._dynamic: list[tuple[str, str]] = []  # newest first
        self._size = 0
        self._max_size = table_size
        self._limit = table_size
        self._max_list = max_list

    def decode(self, block: bytes) -> list[tuple[str, str]]:
        """Decode the fields of one block.

        Raises ConnectionFault if the block cannot be decoded, which leaves the decoder unusable. Raises HeadersTooLarge
        if the list is too large; the whole block has then updated the table and only the stream must be refused.
        """
        fields: list[tuple[str, str]] = []
        append = fields.append
        dynamic = self._dynamic
        position, end = 0, len(block)
        room = self._max_list
        try:
            while position < end and room >= 0:
                byte = block[position]
                if byte < 0x80 and end - position > room and _longer(block, position, room):
                    room = -1
                    break
                position += 1
                if byte & 0x80:
                    index = byte & 0x7F
                    if index == 0x7F:
                        index, position = _integer(block, position, index)
                    elif not index:
                        raise ConnectionFault(COMPRESSION_ERROR, "header block", "index 0")
                    field = _STATIC[index] if index < _FIRST else dynamic[index - _FIRST]
                    room -= len(field[0]) + len(field[1]) + _OVERHEAD
                    if room >= 0:
                        append(field)
                    continue
                if byte & 0x40:
                    mask = 0x3F
                elif byte & 0x20:
                    position = self._resize(block, position, first=not fields)
                    continue
                else:
                    mask = 0x0F
                index = byte & mask
                if index == mask:
                    index, position = _integer(block, position, index)
                if index:
                    name = _STATIC[index][0] if index < _FIRST else dynamic[index - _FIRST][0]
                else:
                    name, position = _string(block, position)
                value, position = _value(block, position)
                size = len(name) + len(value) + _OVERHEAD
                room -= size
                if room >= 0:
                    append((name, value))
                if mask == 0x3F:
                    self._insert(name, value, size)
            if room < 0:
                self._skip(block, position)
        except IndexError as error:
            raise ConnectionFault(COMPRESSION_ERROR, "header block", "cut off, or an index out of range") from error
        if room < 0:
            text = f"header list of more than {self._max_list} bytes, counting {_OVERHEAD} more for each field"
            raise HeadersTooLarge(text, fields)
        return fields

    def _skip(self, block: bytes, position: int) -> None:
        """Skip the rest of a refused block, decoding only fields that enter the table.

        The work is limited to twice the maximum number of fields of an accepted list, not counting runs of short
        indices, and to decoding half as many bytes; ConnectionFault beyond that.
        """
        dynamic, end = self._dynamic, len(block)
        fields, room = 2 * self._max_list // _OVERHEAD, self._max_list // 2
        while position < end:
            run = _SHORT_INDICES(block, position)
            if run is not None:
                if max(run[0]) & 0x7F >= _FIRST + len(dynamic):
                    raise IndexError
                position = run.end()
                continue
            fields -= 1
            if fields < 0:
                break
            byte = block[position]
            if byte & 0x80:
                index, position = _integer(block, position + 1, byte & 0x7F) if byte & 0x7F else (0, position)
                if not index:
                    raise ConnectionFault(COMPRESSION_ERROR, "header block", "index 0")
                if index >= _FIRST + len(dynamic):
                    raise IndexError
                continue
            if byte & 0x60 == 0x20:
                self._resize(block, position + 1, first=False)
            index, start, position = _literal(block, position)
            if index >= _FIRST + len(dynamic):
                raise IndexError
            if not byte & 0x40:
                continue
            if (position - start - _LENGTHS) * 8 // _LONGEST_CODE > self._max_size:
                self._evict(self._max_size + 1)  # larger than the table in any encoding
                continue
            room -= position - start
            if room < 0:
                break
            if index:
                name = _STATIC[index][0] if index < _FIRST else dynamic[index - _FIRST][0]
            else:
                name, start = _string(block, start)
            value, _ = _value(block, start)
            self._insert(name, value, len(name) + len(value) + _OVERHEAD)
        if fields < 0 or room < 0:
            text = f"header list of much more than {self._max_list} bytes"
            raise ConnectionFault(ENHANCE_YOUR_CALM, "header list size", text)

    def _insert(self, name: str, value: str, size: int) -> None:
        self._evict(size)
        if size <= self._max_size:
            self._dynamic.insert(0, (name, value))
            self._size += size

    def _resize(self, block: bytes, position: int, *, first: bool) -> int:
        size = block[position - 1] & 0x1F
        if size == 0x1F:
            size, position = _integer(block, position, size)
        if not first:
            raise ConnectionFault(COMPRESSION_ERROR, "header block", "table size update after a field")
        if size > self._limit:
            raise ConnectionFault(COMPRESSION_ERROR, "header block", f"table size {size}, limit {self._limit}")
        self._max_size = size
        self._evict(0)
        return position

    def _evict(self, need: int) -> None:
        dynamic = self._dynamic
        while dynamic and self._size + need > self._max_size:
            name, value = dynamic.pop()
            self._size -= len(name) + len(value) + _OVERHEAD


def _integer(block: bytes, position: int, value: int) -> tuple[int, int]:
    shift = 0
    while True:
        byte = block[position]
        position += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift >= _LONGEST_INTEGER:
            raise ConnectionFault(COMPRESSION_ERROR, "header block", "integer too large")


def _extent(block: bytes, position: int) -> tuple[int, int]:
    """Return the start and end of the string whose length is at `position`."""
    length = block[position] & 0x7F
    position += 1
    if length == 0x7F:
        length, position = _integer(block, position, length)
    end = position + length
    if end > len(block):
        raise ConnectionFault(COMPRESSION_ERROR, "header block", "string cut off")
    return position, end


def _literal(block: bytes, position: int) -> tuple[int, int, int]:
    """Return the name index (0 for a literal name), start and end of the strings of the literal at `position`."""
    mask = 0x3F if block[position] & 0x40 else 0x0F
    index = block[position] & mask
    position += 1
    if index == mask:
        index, position = _integer(block, position, index)
    start = position
    if not index:
        _, position = _extent(block, position)
    return index, start, _extent(block, position)[1]


def _longer(block: bytes, position: int, room: int) -> bool:
    """Return True if the encoded strings of the literal at `position` exceed `room`; decoding is then unnecessary."""
    if block[position] & 0x60 == 0x20:  # a table size update
        return False
    _, start, end = _literal(block, position)
    return end - start > room


def _string(block: bytes, position: int) -> tuple[str, int]:
    start, end = _extent(block, position)
    data = block[start:end]
    return (huffman.decode(data) if block[position] & 0x80 else data.decode("latin-1")), end


def _value(block: bytes, position: int) -> tuple[str, int]:
    value, end = _string(block, position)
    if "\n" in value or "\r" in value or "\0" in value:
        raise ConnectionFault(PROTOCOL_ERROR, "header fields", "a line break or NUL in a value")
    return value, end


# Encoding uses literals without indexing and without Huffman codes, so blocks can be precomputed and concatenated.

_NAME_INDEX: Final = {name: index for index, (name, _) in reversed(tuple(enumerate(STATIC_TABLE, 1)))}
_FIELD_INDEX: Final = {field: index for index, field in enumerate(STATIC_TABLE, 1) if field[1]}
_SECRET: Final = frozenset({"authorization", "cookie", "proxy-authorization", "set-cookie"})
# table size update to 0; starts the first block for a peer that allows less than the default
NO_TABLE: Final = b"\x20"


def encode_header(name: str, value: str) -> bytes:
    """Encode one field, as an index if the static table contains it. Secrets are marked as never indexed."""
    index = _FIELD_INDEX.get((name, value))
    if index is not None:
        return bytes((0x80 | index,))
    first = 0x10 if name in _SECRET else 0x00
    index = _NAME_INDEX.get(name, 0)
    if index:
        return _encode_integer(index, 0x0F, first) + _encode_string(value)
    return bytes((first,)) + _encode_string(name) + _encode_string(value)


def encode_headers(headers: Headers) -> bytes:
    """Encode a whole block."""
    return b"".join([encode_header(name, value) for name, value in headers])


def _encode_integer(value: int, mask: int, first: int) -> bytes:
    if value < mask:
        return bytes((first | value,))
    out = bytearray((first | mask,))
    value -= mask
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _encode_string(text: str) -> bytes:
    data = text.encode("latin-1")
    size = len(data)
    return (bytes((size,)) if size < 0x7F else _encode_integer(size, 0x7F, 0)) + data
