"""A router in user space for scenes: networks behind NAT, with delay, loss and a limited rate. IPv6 is not translated.

Each network is the far end of a TUN device. The kernels of the computers that have these devices do everything else.
"""

from __future__ import annotations

import fcntl
import heapq
import ipaddress
import os
import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import trio

TCP: Final = 6
UDP: Final = 17
BACKLOG: Final = 0.5  # seconds of data that wait for a slow link; more is dropped

_SET_INTERFACE: Final = 0x400454CA  # TUNSETIFF
_MODE: Final = 0x0001 | 0x1000  # IFF_TUN | IFF_NO_PI
_FIRST_PORT: Final = 20_000
_SOURCE, _DESTINATION = (12, 0), (16, 2)  # offsets of address and port in the headers of IPv4 and of TCP and UDP


class Filter(Enum):
    """Which packets from outside a NAT lets in through a mapped port: RFC 4787 section 5."""

    NONE = "from everyone"
    ADDRESS = "from addresses to which the port has sent"
    PORT = "from addresses and ports to which the port has sent"


Inner = tuple[int, bytes, int]  # protocol, address and port
Outer = tuple[bytes, int]  # address and port


@dataclass
class Nat:
    """Translation of addresses and ports.

    `symmetric` maps an inner port of UDP separately for each destination, otherwise once (a "cone"). TCP connections
    are always mapped separately. Both can be changed, which keeps existing mappings.
    """

    public: str
    symmetric: bool = False
    filter: Filter = Filter.PORT
    _ports: dict[tuple[Inner, Outer | None], int] = field(default_factory=dict)
    _inner: dict[int, Inner] = field(default_factory=dict)
    _sent: dict[int, set[Outer]] = field(default_factory=dict)

    def leave(self, packet: bytearray) -> bool:
        """Translate the source of a packet; return whether it may pass."""
        protocol, source, destination = _ends(packet)
        if protocol is None:
            return False
        inner = (protocol, *source)
        key = (inner, destination if self.symmetric or protocol == TCP else None)
        port = self._ports.setdefault(key, _FIRST_PORT + len(self._ports))
        self._inner[port] = inner
        self._sent.setdefault(port, set()).add(destination)
        _rewrite(packet, _SOURCE, ipaddress.ip_address(self.public).packed, port)
        return True

    def enter(self, packet: bytearray) -> bool:
        """Translate the destination of a packet; return whether it may pass."""
        protocol, source, (_, port) = _ends(packet)
        inner = self._inner.get(port)
        if inner is None or inner[0] != protocol or not self._admits(port, source):
            return False
        _rewrite(packet, _DESTINATION, *inner[1:])
        return True

    def _admits(self, port: int, source: Outer) -> bool:
        sent = self._sent[port]
        if self.filter is Filter.ADDRESS:
            return source[0] in {address for address, _ in sent}
        return self.filter is Filter.NONE or source in sent


@dataclass
class Link:
    """The connection of a network to the router, with the same properties in both directions."""

    descriptor: int
    network: ipaddress.IPv4Network | ipaddress.IPv6Network
    nat: Nat | None = None
    delay: float = 0.0  # seconds, one way
    loss: float = 0.0  # probability
    rate: float = 0.0  # bytes per second; 0 is unlimited
    free: float = 0.0  # time at which a packet to the network can be sent

    def has(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
        """Return whether packets to `address` go over this link. Inner addresses are unknown outside of a NAT."""
        if self.nat is not None and address.version == 4:
            return str(address) == self.nat.public
        return address in self.network


class Router:
    """Forwards packets between links while `run` runs."""

    def __init__(self) -> None:
        self.links: dict[str, Link] = {}
        self._random = random.Random(17)
        self._waiting: list[tuple[float, int, Link, bytearray]] = []
        self._number = 0
        self._changed = trio.Event()

    async def run(self) -> None:
        """Forward packets until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._deliver_late)
            for link in self.links.values():
                nursery.start_soon(self._read, link)

    async def _read(self, link: Link) -> None:
        while True:
            await trio.lowlevel.wait_readable(link.descriptor)
            for _ in range(32):
                try:
                    packet = bytearray(os.read(link.descriptor, 2048))
                except BlockingIOError:
                    break
                self._forward(link, packet)
            await trio.lowlevel.checkpoint()

    def _forward(self, source: Link, packet: bytearray) -> None:
        if source.nat is not None and packet[0] >> 4 == 4 and not source.nat.leave(packet):
            return
        address = ipaddress.ip_address(bytes(packet[16:20] if packet[0] >> 4 == 4 else packet[24:40]))
        link = next((link for link in self.links.values() if link.has(address)), None)
        if link is None or self._random.random() < 1 - (1 - source.loss) * (1 - link.loss):
            return
        now = trio.current_time()
        for part in (source, link):
            if part.rate:
                part.free = max(now, part.free) + len(packet) / part.rate
                if part.free > now + BACKLOG:
                    part.free -= len(packet) / part.rate
                    return
        due = max(now, source.free, link.free) + source.delay + link.delay
        if due <= now:
            self._deliver(link, packet)
            return
        self._number += 1
        heapq.heappush(self._waiting, (due, self._number, link, packet))
        if self._waiting[0][1] == self._number:
            self._changed.set()

    async def _deliver_late(self) -> None:
        while True:
            self._changed = trio.Event()
            with trio.move_on_at(self._waiting[0][0] if self._waiting else float("inf")):
                await self._changed.wait()
            while self._waiting and self._waiting[0][0] <= trio.current_time():
                _, _, link, packet = heapq.heappop(self._waiting)
                self._deliver(link, packet)

    def _deliver(self, link: Link, packet: bytearray) -> None:
        if link.nat is not None and packet[0] >> 4 == 4 and not link.nat.enter(packet):
            return
        try:
            os.write(link.descriptor, packet)
        except OSError:
            pass  # the device is down or its queue is full: the packet is lost


@contextmanager
def tun(name: str) -> Iterator[int]:
    """Create a TUN device in the current network namespace; yield the descriptor of its packets, which never blocks."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, _SET_INTERFACE, struct.pack("16sH22x", name.encode(), _MODE))
        yield descriptor
    finally:
        os.close(descriptor)


def _ends(packet: bytearray) -> tuple[int | None, Outer, Outer]:
    """Return the protocol, the source and the destination of an IPv4 packet; no protocol if it has no ports."""
    protocol, begin = packet[9], 4 * (packet[0] & 15)
    fragment = struct.unpack_from("!H", packet, 6)[0] & 0x3FFF
    if protocol not in (TCP, UDP) or fragment:
        return None, (b"", 0), (b"", 0)
    source, destination = struct.unpack_from("!HH", packet, begin)
    return protocol, (bytes(packet[12:16]), source), (bytes(packet[16:20]), destination)


def _rewrite(packet: bytearray, at: tuple[int, int], address: bytes, port: int) -> None:
    """Replace an address and a port, and adjust the checksums as in RFC 1624."""
    begin = 4 * (packet[0] & 15)
    at_address, at_port = slice(at[0], at[0] + 4), slice(begin + at[1], begin + at[1] + 2)
    old, new = bytes(packet[at_address] + packet[at_port]), address + struct.pack("!H", port)
    packet[at_address], packet[at_port] = new[:4], new[4:]
    _adjust(packet, 10, old[:4], new[:4])
    if packet[9] == TCP:
        _adjust(packet, begin + 16, old, new)
    elif packet[begin + 6 : begin + 8] != b"\0\0":  # UDP without a checksum keeps none
        _adjust(packet, begin + 6, old, new)


def _adjust(packet: bytearray, at: int, old: bytes, new: bytes) -> None:
    total = 0xFFFF ^ struct.unpack_from("!H", packet, at)[0]
    total += sum(0xFFFF ^ word for (word,) in struct.iter_unpack("!H", old))
    total += sum(word for (word,) in struct.iter_unpack("!H", new))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into("!H", packet, at, (0xFFFF ^ total) or 0xFFFF)
