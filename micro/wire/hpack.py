"""HPACK (RFC 7541): a decoder that keeps only the values which the server reads, and an encoder without a table. Pure.

Huffman codes of up to 8 bits, which are all letters and digits, are decoded by a table of one byte for each character;
longer ones by the first code of each length.
"""

from micro.wire.faults import COMPRESSION_ERROR, ENHANCE_YOUR_CALM, WireFault
from micro.wire.hpack_tables import LENGTHS, ROWS, STATIC, SYMBOLS, TAIL

MAX_INTEGER = 1 << 24
EOS_BITS = 30

KEPT = (
    b":path",
    b":method",
    b":status",
    b"authorization",
    b"content-type",
    b"grpc-encoding",
    b"grpc-message",
    b"grpc-status",
    b"viam-sid",
    b"machine-heartbeat-window",
)
"""Header fields whose values are read; the table of the decoder has only the sizes of the others."""


def _cut_off() -> WireFault:
    return WireFault(COMPRESSION_ERROR, "a header block is cut off")


def huffman(data: "bytes | bytearray", limit: int) -> bytes:
    """Decode a Huffman code (RFC 7541, 5.2) of at most `limit` characters."""
    out = bytearray()
    code = bits = 0
    for byte in data:
        code = code << 8 | byte
        bits += 8
        while bits >= 8:
            top = code >> (bits - 8)
            length = LENGTHS[top]
            symbol = SYMBOLS[top]
            if not length:
                for length, first, offset, count in ROWS:
                    if bits < length:
                        length = 0
                        break
                    place = (code >> (bits - length)) - first
                    if 0 <= place < count:
                        symbol = TAIL[offset + place]
                        break
                else:
                    raise WireFault(COMPRESSION_ERROR, "a Huffman code contains EOS")
                if not length:
                    break
            out.append(symbol)
            bits -= length
            code &= (1 << bits) - 1
        if len(out) > limit:
            raise WireFault(ENHANCE_YOUR_CALM, "header fields are too long")
    while 0 < bits < 8:  # up to one more character of 5 to 7 bits, and the padding
        padded = (code << (8 - bits)) | ((1 << (8 - bits)) - 1)
        length = LENGTHS[padded]
        if not 0 < length <= bits:
            break
        out.append(SYMBOLS[padded])
        bits -= length
        code &= (1 << bits) - 1
    if bits > 7 or code != (1 << bits) - 1:
        raise WireFault(COMPRESSION_ERROR, "a Huffman code has no valid padding")
    return bytes(out)


class Decoder:
    """Decodes the header blocks of one connection, in their order."""

    def __init__(self, table_size: int, max_list: int) -> None:
        self._most = table_size
        self._limit = table_size
        self._max_list = max_list
        self._table: list[tuple[bytes, bytes, int, int]] = []  # newest first; texts are empty unless KEPT
        self._size = 0

    def decode(self, block: "bytes | bytearray") -> dict[bytes, bytes]:
        """Return the fields of KEPT; the first value counts. WireFault if the block is invalid or too large."""
        headers: dict[bytes, bytes] = {}
        left = self._max_list
        at, end = 0, len(block)
        fields = False
        while at < end:
            byte = block[at]
            if byte & 0xE0 == 0x20:
                if fields:
                    raise WireFault(COMPRESSION_ERROR, "a table size follows a header field")
                size, at = self._integer(block, at, 5)
                if size > self._most:
                    raise WireFault(COMPRESSION_ERROR, "a table size is above the limit")
                self._limit = size
                self._shrink(0)
                continue
            fields = True
            if byte & 0x80:
                index, at = self._integer(block, at, 7)
                name, value, _, size = self._entry(index)
                left -= size
            else:
                index, at = self._integer(block, at, 6 if byte & 0x40 else 4)
                if index:
                    name, _, length, _ = self._entry(index)
                else:
                    name, at = self._text(block, at, left)
                    length = len(name)
                    if name not in KEPT:
                        name = b""
                value, at = self._text(block, at, left)
                size = length + len(value) + 32
                left -= size
                if not name:
                    value = b""
                if byte & 0x40:
                    self._add(name, value, length, size)
            if left < 0:
                raise WireFault(ENHANCE_YOUR_CALM, "header fields are too long")
            if name and name not in headers:
                headers[name] = value
        return headers

    def _entry(self, index: int) -> tuple[bytes, bytes, int, int]:
        """Return name, value, length of the name, and size of an entry of the static or dynamic table."""
        if 0 < index < 62:
            name, value = STATIC[index - 1]
            return name if name in KEPT else b"", value, len(name), len(name) + len(value) + 32
        if not 62 <= index < 62 + len(self._table):
            raise WireFault(COMPRESSION_ERROR, "a header field refers to no entry")
        return self._table[index - 62]

    def _add(self, name: bytes, value: bytes, length: int, size: int) -> None:
        if size > self._limit:
            self._table.clear()
            self._size = 0
            return
        self._shrink(size)
        self._table.insert(0, (name, value, length, size))
        self._size += size

    def _shrink(self, room: int) -> None:
        """Remove the oldest entries until `room` bytes are free."""
        while self._table and self._size + room > self._limit:
            self._size -= self._table.pop()[3]

    def _integer(self, block: "bytes | bytearray", at: int, prefix: int) -> tuple[int, int]:
        most = (1 << prefix) - 1
        value = block[at] & most
        at += 1
        if value < most:
            return value, at
        shift = 0
        while True:
            if at >= len(block):
                raise _cut_off()
            byte = block[at]
            at += 1
            value += (byte & 127) << shift
            shift += 7
            if value > MAX_INTEGER or shift > 28:
                raise WireFault(COMPRESSION_ERROR, "an integer of a header block is too large")
            if byte < 128:
                return value, at

    def _text(self, block: "bytes | bytearray", at: int, limit: int) -> tuple[bytes, int]:
        if at >= len(block):
            raise _cut_off()
        coded = block[at] & 0x80
        size, at = self._integer(block, at, 7)
        end = at + size
        if end > len(block):
            raise _cut_off()
        if coded:
            return huffman(block[at:end], limit), end
        if size > limit:
            raise WireFault(ENHANCE_YOUR_CALM, "header fields are too long")
        return bytes(block[at:end]), end


def encode(out: bytearray, name: bytes, value: bytes) -> None:
    """Append a field to a header block, without a table and without Huffman codes."""
    out.append(0)
    _encode_text(out, name)
    _encode_text(out, value)


def _encode_text(out: bytearray, text: bytes) -> None:
    size = len(text)
    if size < 127:
        out.append(size)
    else:
        out.append(127)
        size -= 127
        while size > 127:
            out.append(128 | size & 127)
            size >>= 7
        out.append(size)
    out += text
