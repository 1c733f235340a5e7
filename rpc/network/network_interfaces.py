"""Network interfaces of this computer with their addresses, and notification of changes, using rtnetlink(7)."""

from __future__ import annotations

import errno
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

import trio

Address = IPv4Address | IPv6Address

# linux/rtnetlink.h, linux/if_addr.h, linux/if_link.h and net/if.h
_NEWLINK: Final = 16
_GETLINK: Final = 18
_NEWADDR: Final = 20
_GETADDR: Final = 22
_GROUPS: Final = 0x1 | 0x10 | 0x100  # RTMGRP_LINK, _IPV4_IFADDR, _IPV6_IFADDR
_DUMP: Final = 0x301  # NLM_F_REQUEST, NLM_F_ROOT, NLM_F_MATCH
_DONE: Final = 3
_ERROR: Final = 2
_ADDRESS: Final = 1  # IFA_ADDRESS
_LOCAL: Final = 2  # IFA_LOCAL: this computer's address on point-to-point links
_FLAGS: Final = 8  # IFA_FLAGS
_NAME: Final = 3  # IFLA_IFNAME
_UNUSABLE: Final = 0x08 | 0x20 | 0x40  # IFA_F_DADFAILED, IFA_F_DEPRECATED, IFA_F_TENTATIVE
_UP: Final = 0x1
_LOOPBACK: Final = 0x8
_RUNNING: Final = 0x40
_MULTICAST: Final = 0x1000

_HEADER: Final = struct.Struct("=IHHII")
_LINK: Final = struct.Struct("=BxHiII")
_IFADDR: Final = struct.Struct("=BBBBI")
_ATTRIBUTE: Final = struct.Struct("=HH")
_BUFFER: Final = 64 * 1024  # bytes of one read


@dataclass(frozen=True, slots=True)
class Interface:
    """Network interface that is up."""

    index: int
    name: str
    loopback: bool
    multicast: bool
    addresses: tuple[Address, ...]


def outward() -> list[str]:
    """Return this computer's addresses that other computers may reach, by interface; empty if the kernel fails."""
    try:
        own_interfaces = interfaces()
    except OSError:
        return []
    return [
        str(address)
        for interface in own_interfaces
        for address in interface.addresses
        if not (interface.loopback or address.is_loopback or (address.version == 6 and address.is_link_local))
    ]


async def watch_changes(ring: Callable[[], object]) -> None:
    """Call `ring` whenever interfaces or addresses may have changed, until cancelled.

    Returns at once if the kernel does not support notifications.
    """
    try:
        changes = InterfaceChanges()
    except OSError:
        return
    try:
        while True:
            await changes.wait()
            ring()
    finally:
        changes.close()


def read_interfaces(links: list[bytes], addresses: list[bytes]) -> tuple[Interface, ...]:
    """Parse the link and address messages of the kernel, without their headers."""
    addresses_by_index: dict[int, list[Address]] = {}
    for payload in addresses:
        family, _, flags, _, index = _IFADDR.unpack_from(payload)
        attributes = dict(_attributes(payload, _IFADDR.size))
        if _FLAGS in attributes:
            flags = int.from_bytes(attributes[_FLAGS][:4], "little" if struct.pack("=H", 1)[0] else "big")
        raw = attributes.get(_LOCAL) or attributes.get(_ADDRESS)
        if raw and family in (socket.AF_INET, socket.AF_INET6) and not flags & _UNUSABLE:
            addresses_by_index.setdefault(index, []).append(ip_address(raw))
    usable = []
    for payload in links:
        _, _, index, flags, _ = _LINK.unpack_from(payload)
        name = dict(_attributes(payload, _LINK.size)).get(_NAME, b"").rstrip(b"\0").decode(errors="replace")
        if flags & _UP and flags & _RUNNING:
            usable.append(
                Interface(
                    index,
                    name,
                    bool(flags & _LOOPBACK),
                    bool(flags & _MULTICAST),
                    tuple(addresses_by_index.get(index, ())),
                )
            )
    return tuple(sorted(usable, key=lambda interface: interface.index))


def _dump(sock: socket.socket, kind: int, payload: bytes) -> Iterator[bytes]:
    sock.send(_HEADER.pack(_HEADER.size + len(payload), kind, _DUMP, 1, 0) + payload)
    while True:
        for message_kind, body in _messages(sock.recv(_BUFFER)):
            if message_kind == _DONE:
                return
            if message_kind == _ERROR:
                number = -struct.unpack_from("=i", body)[0]
                raise OSError(number, "the kernel does not list interfaces")
            if message_kind in (_NEWLINK, _NEWADDR):
                yield body


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, at)
        if length < _HEADER.size:
            return
        yield kind, data[at + _HEADER.size : at + length]
        at += length + 3 & ~3


def _attributes(payload: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    at = at + 3 & ~3
    while at + _ATTRIBUTE.size <= len(payload):
        length, kind = _ATTRIBUTE.unpack_from(payload, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind & 0x3FFF, payload[at + _ATTRIBUTE.size : at + length]
        at += length + 3 & ~3


if sys.platform == "win32":

    def interfaces() -> tuple[Interface, ...]:
        """Return one interface with the addresses to which the name of this computer resolves. Raises OSError."""
        from rpc.network.interfaces_windows import own_addresses

        addresses = own_addresses()
        return (
            (Interface(1, "this computer", loopback=False, multicast=True, addresses=addresses),) if addresses else ()
        )

    class InterfaceChanges:
        """Changes of addresses are not reported on Windows: creating it raises OSError."""

        def __init__(self) -> None:
            raise OSError(
                errno.EOPNOTSUPP, "mDNS needs the kernel's list of network interfaces, which does not exist on Windows"
            )

        async def wait(self) -> None:
            """Is never called."""

        def close(self) -> None:
            """Is never called."""

else:

    def interfaces() -> tuple[Interface, ...]:
        """Return the interfaces that are up, with their usable addresses. OSError if the kernel does not list them."""
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as sock:
            sock.bind((0, 0))
            links = list(_dump(sock, _GETLINK, _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0)))
            addresses = list(_dump(sock, _GETADDR, _IFADDR.pack(socket.AF_UNSPEC, 0, 0, 0, 0)))
        return read_interfaces(links, addresses)

    class InterfaceChanges:
        """Subscription to changes of interfaces and addresses; close it with `close`. OSError if the kernel refuses."""

        def __init__(self) -> None:
            self._sock = socket.socket(
                socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE
            )
            try:
                self._sock.bind((0, _GROUPS))
            except BaseException:
                self._sock.close()
                raise

        async def wait(self) -> None:
            """Wait until something may have changed since the last call. A checkpoint."""
            await trio.lowlevel.wait_readable(self._sock)
            while True:
                try:
                    self._sock.recv(_BUFFER)
                except BlockingIOError:
                    return
                except OSError as error:
                    if error.errno != errno.ENOBUFS:  # messages were lost, so something has changed
                        raise

        def close(self) -> None:
            """Close the socket; a pending `wait` raises ClosedResourceError."""
            trio.lowlevel.notify_closing(self._sock)
            self._sock.close()
