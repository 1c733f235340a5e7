"""The subset of DNS messages (RFC 1035) that a check needs: one question and its answer. Pure."""

from __future__ import annotations

import ipaddress
import struct
from typing import Final

_HEADER: Final = struct.Struct(">6H")
_RECURSION: Final = 0x0100  # 4.1.1, RD
_ANSWER: Final = 0x8000  # QR
_A, _IN = 1, 1

CODES: Final = {
    1: "the query is malformed",
    2: "the server failed",
    3: "there is no such name",
    5: "the server refused the query",
}
"""Texts for response codes (RFC 1035 4.1.1, RCODE)."""


class DnsError(ValueError):
    """The answer is invalid or reports an error."""


def query(number: int, name: str) -> bytes:
    """Return a query for the IPv4 addresses of `name`, with the 2-byte length for TCP (4.2.2)."""
    labels = b"".join(bytes((len(label),)) + label for label in name.rstrip(".").encode("idna").split(b"."))
    message = _HEADER.pack(number, _RECURSION, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", _A, _IN)
    return struct.pack(">H", len(message)) + message


def answer(message: bytes, number: int) -> list[str]:
    """Return the IPv4 addresses in an answer (without length prefix) to query `number`. Raises DnsError."""
    if len(message) < _HEADER.size:
        raise DnsError("the answer is cut off")
    answered, flags, questions, answers, _, _ = _HEADER.unpack_from(message)
    if answered != number or not flags & _ANSWER:
        raise DnsError("the message is not an answer to this query")
    if code := flags & 0xF:
        raise DnsError(CODES.get(code, f"error {code}"))
    try:
        offset = _HEADER.size
        for _ in range(questions):
            offset = _skip_name(message, offset) + 4
        addresses = []
        for _ in range(answers):
            offset = _skip_name(message, offset)
            kind, _, _, size = struct.unpack_from(">HHIH", message, offset)
            data = message[offset + 10 : offset + 10 + size]
            offset += 10 + size
            if kind == _A:
                addresses.append(str(ipaddress.IPv4Address(data)))
    except (struct.error, IndexError, ipaddress.AddressValueError):
        raise DnsError("the answer is cut off") from None
    return addresses


def _skip_name(message: bytes, offset: int) -> int:
    while (size := message[offset]) != 0:
        if size & 0xC0:
            return offset + 2  # a pointer ends the name
        offset += 1 + size
    return offset + 1
