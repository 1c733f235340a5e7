"""Multicast DNS (RFC 6762): the answer to a question for this machine. Pure.

The machine is an instance of `_rpc._tcp.local`, as official clients and `machine discover` ask for. There is no
probing: its name has the id of the machine at its cloud.
"""

import struct

PTR, TXT, A, SRV, ANY = 12, 16, 1, 33, 255
IN, FLUSH = 1, 0x8000
ANSWER = 0x8400  # flags of an authoritative answer
HOST_TTL, OTHER_TTL = 120, 4500
SERVICE = (b"_rpc", b"_tcp", b"local")
ENUMERATION = (b"_services", b"_dns-sd", b"_udp", b"local")
GROUP, PORT = "224.0.0.251", 5353
MAX_QUESTIONS = 8
MAX_LABELS = 10
TEXT = b"\x04grpc"


class Zone:
    """The names of a machine and its address."""

    def __init__(self, name: str, address: str, port: int) -> None:
        label = name.replace(".", "-").encode()[:63] or b"machine"
        self._instance = (label,) + SERVICE
        self._host = (label, b"local")
        self._address = bytes([int(part) for part in address.split(".")])
        self._port = port

    def announcement(self) -> bytes:
        """Return the unasked answer with which a machine announces itself."""
        return self._message(self._records(SERVICE, ANY))

    def answer(self, data: bytes, once: bool = False) -> bytes:
        """Return the answer to a message, empty if it does not concern this machine. Never raises.

        `once` is for a question from another port than that of multicast DNS, whose sender only sees what is sent to
        it: the answer repeats the id and the questions (RFC 6762, 6.7).
        """
        try:
            questions = _questions(data)
        except (IndexError, ValueError):
            return b""
        records: list[bytes] = []
        for name, kind in questions:
            for record in self._records(name, kind):
                if record not in records:
                    records.append(record)
        if not records:
            return b""
        if once:
            count = len(questions)
            asked = b"".join([_name(name) + struct.pack(">HH", kind, IN) for name, kind in questions])
            return data[:2] + struct.pack(">HHHHH", ANSWER, count, len(records), 0, 0) + asked + b"".join(records)
        return self._message(records)

    def _records(self, name: "tuple[bytes, ...]", kind: int) -> "list[bytes]":
        """Return the records for a question; a pointer comes with what it points to."""
        port = struct.pack(">HHH", 0, 0, self._port) + _name(self._host)
        srv = _record(self._instance, SRV, IN | FLUSH, HOST_TTL, port)
        txt = _record(self._instance, TXT, IN | FLUSH, OTHER_TTL, TEXT)
        a = _record(self._host, A, IN | FLUSH, HOST_TTL, self._address)
        if name == SERVICE and kind in (PTR, ANY):
            return [_record(SERVICE, PTR, IN, OTHER_TTL, _name(self._instance)), srv, txt, a]
        if name == ENUMERATION and kind in (PTR, ANY):
            return [_record(ENUMERATION, PTR, IN, OTHER_TTL, _name(SERVICE))]
        if name == self._instance:
            return [record for of, record in ((SRV, srv), (TXT, txt)) if kind in (of, ANY)] + [a]
        if name == self._host and kind in (A, ANY):
            return [a]
        return []

    def _message(self, records: "list[bytes]") -> bytes:
        return struct.pack(">HHHHHH", 0, ANSWER, 0, len(records), 0, 0) + b"".join(records)


def _questions(data: bytes) -> "list[tuple[tuple[bytes, ...], int]]":
    """Return name and kind of each question; none for an answer. IndexError or ValueError if it is not valid."""
    flags, count = struct.unpack(">HH", data[2:6] if len(data) >= 12 else bytes([0xFF] * 4))
    if flags & 0xF800:
        return []
    at = 12
    questions = []
    for _ in range(min(count, MAX_QUESTIONS)):
        labels = []
        jumped = -1
        for _ in range(MAX_LABELS):
            size = data[at]
            if size >= 0xC0:  # the rest is somewhere before
                jumped = at + 2 if jumped < 0 else jumped
                at = (size & 0x3F) << 8 | data[at + 1]
                continue
            at += 1
            if not size:
                break
            labels.append(bytes(data[at : at + size]).lower())
            at += size
        else:
            raise ValueError
        at = jumped if jumped >= 0 else at
        kind = data[at] << 8 | data[at + 1]
        at += 4
        questions.append((tuple(labels), kind))
    return questions


def _name(labels: "tuple[bytes, ...]") -> bytes:
    out = b""
    for label in labels:
        out += bytes([len(label)]) + label
    return out + b"\x00"


def _record(name: "tuple[bytes, ...]", kind: int, cls: int, ttl: int, data: bytes) -> bytes:
    return _name(name) + struct.pack(">HHIH", kind, cls, ttl, len(data)) + data
