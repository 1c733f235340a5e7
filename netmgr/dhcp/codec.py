"""Messages of DHCP (RFC 2131, 2132, 3396, 3397, 3442). Pure. Decoding never fails: wrong messages are None."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from ipaddress import IPv4Address, IPv4Network
from typing import Final

import msgspec

REQUEST, REPLY = 1, 2
ETHERNET: Final = 1
COOKIE: Final = b"\x63\x82\x53\x63"
BROADCAST: Final = 0x8000
"""Flag of a client that cannot receive unicast packets before it has an address."""
MIN_SIZE: Final = 300
"""Bytes of a message: some servers drop shorter ones, as BOOTP required."""
MAX_SIZE: Final = 1500
ANY: Final = IPv4Address(0)
_HEAD: Final = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s")
_PAD, _END, _OVERLOAD = 0, 255, 52
MAX_NAMES: Final = 10
"""Search domains of a lease."""
MAX_ROUTES: Final = 50


class DhcpKind(IntEnum):
    """Type of a message (option 53)."""

    DISCOVER = 1
    OFFER = 2
    REQUEST = 3
    DECLINE = 4
    ACK = 5
    NAK = 6
    RELEASE = 7
    INFORM = 8


class Option(IntEnum):
    """Options in use."""

    MASK = 1
    ROUTER = 3
    DNS = 6
    HOSTNAME = 12
    DOMAIN = 15
    MTU = 26
    ADDRESS = 50
    LEASE_TIME = 51
    KIND = 53
    SERVER = 54
    PARAMETERS = 55
    MAX_SIZE = 57
    RENEWAL = 58
    REBINDING = 59
    CLIENT = 61
    CAPTIVE_PORTAL = 114
    SEARCH = 119
    ROUTES = 121


class DhcpMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message. `mac` is the hardware address of the client, 6 bytes."""

    op: int
    xid: int
    mac: bytes
    secs: int = 0
    flags: int = 0
    ciaddr: IPv4Address = ANY
    yiaddr: IPv4Address = ANY
    giaddr: IPv4Address = ANY
    options: dict[int, bytes] = {}

    @property
    def kind(self) -> int:
        """Type; 0 if the message is one of BOOTP."""
        value = self.options.get(Option.KIND, b"")
        return value[0] if len(value) == 1 else 0

    def address(self, option: int) -> IPv4Address | None:
        """Return the first address of an option."""
        return next(iter(self.addresses(option)), None)

    def addresses(self, option: int) -> tuple[IPv4Address, ...]:
        """Return the addresses of an option; none if its length is wrong."""
        value = self.options.get(option, b"")
        if len(value) % 4:
            return ()
        return tuple(IPv4Address(value[start : start + 4]) for start in range(0, len(value), 4))

    def number(self, option: int, size: int) -> int | None:
        """Return an unsigned number of `size` bytes; None if there is none."""
        value = self.options.get(option, b"")
        return int.from_bytes(value, "big") if len(value) == size else None


def encode(message: DhcpMessage) -> bytes:
    """Return the bytes of a message. Options are at most 255 bytes each."""
    options = b"".join(bytes((code, len(value))) + value for code, value in message.options.items())
    head = _HEAD.pack(
        message.op, ETHERNET, 6, 0, message.xid, message.secs, message.flags, message.ciaddr.packed,
        message.yiaddr.packed, ANY.packed, message.giaddr.packed, message.mac.ljust(16, b"\0"), b"", b"",
    )  # fmt: skip
    return (head + COOKIE + options + bytes((_END,))).ljust(MIN_SIZE, b"\0")


def decode(data: bytes) -> DhcpMessage | None:
    """Return a message of an Ethernet client; None for everything else."""
    if not _HEAD.size + len(COOKIE) <= len(data) <= MAX_SIZE:
        return None
    op, hardware, size, _, xid, secs, flags, ciaddr, yiaddr, _, giaddr, mac, name, file = _HEAD.unpack_from(data)
    if op not in (REQUEST, REPLY) or (hardware, size) != (ETHERNET, 6):
        return None
    if data[_HEAD.size : _HEAD.size + 4] != COOKIE:
        return None
    options: dict[int, bytes] = {}
    if not _read(data[_HEAD.size + 4 :], options):
        return None
    overload = options.get(_OVERLOAD, b"\0")
    for bit, field in ((1, file), (2, name)):
        if len(overload) == 1 and overload[0] & bit and not _read(field, options):
            return None
    return DhcpMessage(
        op=op, xid=xid, mac=mac[:6], secs=secs, flags=flags, ciaddr=IPv4Address(ciaddr), yiaddr=IPv4Address(yiaddr),
        giaddr=IPv4Address(giaddr), options=options,
    )  # fmt: skip


def _read(data: bytes, options: dict[int, bytes]) -> bool:
    """Add options, and return whether all were whole. Those that appear twice are parts of a value (RFC 3396)."""
    at = 0
    while at < len(data):
        code = data[at]
        if code == _END:
            break
        if code == _PAD:
            at += 1
            continue
        if at + 2 > len(data) or at + 2 + data[at + 1] > len(data):
            return False
        end = at + 2 + data[at + 1]
        options[code] = options.get(code, b"") + data[at + 2 : end]
        at = end
    return True


def routes_of(value: bytes) -> tuple[tuple[IPv4Network, IPv4Address], ...]:
    """Return the classless routes of option 121; none if one is malformed."""
    routes: list[tuple[IPv4Network, IPv4Address]] = []
    at = 0
    while at < len(value) and len(routes) < MAX_ROUTES:
        length = value[at]
        size = (length + 7) // 8
        end = at + 1 + size + 4
        if length > 32 or end > len(value):
            return ()
        destination = value[at + 1 : at + 1 + size].ljust(4, b"\0")
        routes.append((IPv4Network((destination, length), strict=False), IPv4Address(value[end - 4 : end])))
        at = end
    return tuple(routes)


def names_of(value: bytes) -> tuple[str, ...]:
    """Return the search domains of option 119, which are compressed as in DNS; none if one is malformed."""
    return tuple(dict.fromkeys(_names(value)))[:MAX_NAMES]


def _names(value: bytes) -> Iterator[str]:
    at = 0
    while at < len(value):
        labels, at = _name(value, at)
        if not labels:
            return
        yield ".".join(labels)


def _name(value: bytes, at: int) -> tuple[list[str], int]:
    """Return the labels of the name at an offset, and the offset after it. No labels if it is malformed."""
    labels: list[str] = []
    end, limit = 0, len(value)
    while at < limit:
        length = value[at]
        if length >= 0xC0:  # a pointer, which must lead backwards, so that there is no loop
            target = (length & 0x3F) << 8 | (value[at + 1] if at + 1 < len(value) else limit)
            if target >= at or target >= limit:
                return [], len(value)
            end, limit, at = end or at + 2, at, target
            continue
        if length == 0:
            return labels, end or at + 1
        label = value[at + 1 : at + 1 + length]
        if length > 63 or len(label) < length or not is_label(label) or len(labels) > 20:
            return [], len(value)
        labels.append(label.decode())
        at += 1 + length
    return [], len(value)


def is_label(label: bytes) -> bool:
    """Return whether bytes are a part of a host name: letters, digits, hyphens and underscores."""
    return 0 < len(label) < 64 and label.isascii() and label.replace(b"-", b"").replace(b"_", b"").isalnum()


def domain_of(value: bytes) -> tuple[str, ...]:
    """Return the domain of option 15 as a tuple; empty if it is malformed. Some servers send several, with spaces."""
    names = value.rstrip(b"\0").split()
    valid = [name for name in names if len(name) < 254 and all(is_label(label) for label in name.split(b"."))]
    return tuple(name.decode() for name in valid[:MAX_NAMES])
