"""STUN binding requests and answers (RFC 8489), which report the public address. Pure."""

from __future__ import annotations

import ipaddress
import struct
from typing import Final

COOKIE: Final = 0x2112A442  # section 5
HEADER: Final = 20  # bytes
_REQUEST, _SUCCESS = 0x0001, 0x0101
_MAPPED, _XOR_MAPPED = 0x0001, 0x0020  # section 18.3.1


class StunError(ValueError):
    """The message is not a valid answer to the request."""


def request(transaction: bytes) -> bytes:
    """Return a binding request. `transaction` is a random id of 12 bytes."""
    return struct.pack(">HHI", _REQUEST, 0, COOKIE) + transaction


def length(header: bytes) -> int:
    """Return the number of bytes after a header, for streams."""
    return int(struct.unpack_from(">H", header, 2)[0])


def transaction_of(message: bytes) -> bytes:
    """Return the transaction id of a message; empty if it is not a STUN message."""
    return message[8:HEADER] if len(message) >= HEADER and message[4:8] == struct.pack(">I", COOKIE) else b""


def answer(message: bytes, transaction: bytes) -> tuple[str, int]:
    """Return the address and port that the server saw. Raises StunError if the message is not a valid answer."""
    if transaction_of(message) != transaction or struct.unpack_from(">H", message)[0] != _SUCCESS:
        raise StunError("the message is not an answer to this request")
    offset, plain = HEADER, None
    end = min(len(message), HEADER + length(message))
    while offset + 4 <= end:
        kind, size = struct.unpack_from(">HH", message, offset)
        value = message[offset + 4 : offset + 4 + size]
        if kind == _XOR_MAPPED:
            return _address(value, message[4:HEADER])
        if kind == _MAPPED:
            plain = value
        offset += 4 + size + (-size % 4)
    if plain is None:
        raise StunError("the answer contains no address")
    return _address(plain, bytes(16))


def _address(value: bytes, mask: bytes) -> tuple[str, int]:
    size = {1: 4, 2: 16}.get(value[1] if len(value) > 1 else 0, 0)  # section 14.1, family
    if not size or len(value) < 4 + size:
        raise StunError("the answer's address is cut off")
    port = struct.unpack_from(">H", value, 2)[0] ^ int.from_bytes(mask[:2], "big")
    raw = bytes(byte ^ masking for byte, masking in zip(value[4 : 4 + size], mask[:size], strict=True))
    return str(ipaddress.ip_address(raw)), port
