"""ICMP echo (RFC 792): request and reply. Pure."""

from __future__ import annotations

import struct
from typing import Final

_REQUEST, _REPLY = 8, 0
_HEADER: Final = struct.Struct(">BBHHH")


def request(identifier: int, sequence: int, data: bytes = b"machine-server") -> bytes:
    """Return an echo request. For datagram sockets, the kernel replaces the identifier with its own."""
    head = _HEADER.pack(_REQUEST, 0, 0, identifier, sequence)
    return _HEADER.pack(_REQUEST, 0, checksum(head + data), identifier, sequence) + data


def reply_sequence(packet: bytes) -> int | None:
    """Return the sequence number of an echo reply, with or without IP header; None for other packets."""
    if packet and packet[0] >> 4 == 4:
        packet = packet[(packet[0] & 0xF) * 4 :]
    if len(packet) < _HEADER.size or packet[0] != _REPLY:
        return None
    return int(_HEADER.unpack_from(packet)[4])


def checksum(data: bytes) -> int:
    """Return the internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(~total & 0xFFFF)
