"""Sockets for multicast DNS on one interface, with one for each address family."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

import trio

from rpc.network import Interface
from rpc.network.mdns import GROUP_V4, GROUP_V6, MAX_MESSAGE, PORT

_IP_MULTICAST_ALL: Final = 49  # linux/in.h
_IPV6_MULTICAST_ALL: Final = 29  # linux/in6.h, from Linux 4.20 on
_TTL: Final = 255  # RFC 6762 11
_GONE: Final = frozenset({errno.ENETUNREACH, errno.ENODEV, errno.ENETDOWN, errno.EADDRNOTAVAIL, errno.EHOSTUNREACH})

Received = Callable[[bytes, tuple[Any, ...], "Socket"], Awaitable[None]]


class Socket:
    """A socket for one address family on one interface."""

    def __init__(self, sock: trio.socket.SocketType, group: tuple[Any, ...]) -> None:
        self._sock = sock
        self._group = group

    async def multicast(self, data: bytes) -> None:
        """Send to the multicast group. Datagrams are dropped silently while the interface is down."""
        await self.unicast(data, self._group)

    async def unicast(self, data: bytes, address: tuple[Any, ...]) -> None:
        """Send to one address. Datagrams are dropped silently while the interface is down."""
        try:
            await self._sock.sendto(data, address)
        except OSError as error:
            if error.errno not in _GONE | {errno.EPERM, errno.ENOBUFS, errno.EMSGSIZE}:
                raise

    async def receive(self, received: Received) -> None:
        """Call `received` with data, sender and this socket for each datagram, until cancelled."""
        while True:
            data, address = await self._sock.recvfrom(MAX_MESSAGE + 1)
            await received(data, address, self)

    def close(self) -> None:
        """Close the socket, which leaves the group."""
        self._sock.close()


async def open_sockets(interface: Interface, *, port: int = PORT) -> list[Socket]:
    """Open a socket for each address family of the interface. Raises OSError if none can be opened."""
    sockets: list[Socket] = []
    failure: OSError | None = None
    for open_family, address_type in ((_open_v4, IPv4Address), (_open_v6, IPv6Address)):
        if any(isinstance(address, address_type) for address in interface.addresses):
            try:
                sockets.append(await open_family(interface.index, port))
            except OSError as error:
                failure = error
    if not sockets and failure is not None:
        raise failure
    return sockets


async def _open_v4(index: int, port: int) -> Socket:
    sock = trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        _share(sock)
        member = struct.pack("=4s4si", socket.inet_aton(GROUP_V4), bytes(4), index)
        sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, member)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, _TTL)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, _TTL)
        await sock.bind((GROUP_V4, port))
    except BaseException:
        sock.close()
        raise
    return Socket(sock, (GROUP_V4, port))


async def _open_v6(index: int, port: int) -> Socket:
    sock = trio.socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    try:
        _share(sock)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL, 0)
        member = socket.inet_pton(socket.AF_INET6, GROUP_V6) + struct.pack("=I", index)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, _TTL)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, _TTL)
        await sock.bind((GROUP_V6, port, 0, index))
    except BaseException:
        sock.close()
        raise
    return Socket(sock, (GROUP_V6, port, 0, index))


def _share(sock: trio.socket.SocketType) -> None:
    """Share the port with other multicast DNS programs of this computer."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
