"""Packet sockets for DHCP: a client has no address yet, and its server answers clients without one."""

from __future__ import annotations

import ctypes
import socket
import struct
from ipaddress import IPv4Address
from typing import Final

import trio

from netmgr.dhcp.codec import MAX_SIZE, DhcpMessage, decode, encode

CLIENT_PORT, SERVER_PORT = 68, 67
EVERYBODY: Final = b"\xff" * 6
BROADCAST: Final = IPv4Address("255.255.255.255")
_IP: Final = 0x0800  # ETH_P_IP
_UDP: Final = 17
_ATTACH_FILTER: Final = 26  # SO_ATTACH_FILTER
_BUFFER: Final = 64 * 1024  # bytes that the kernel keeps: some 40 messages


def _filter(port: int) -> bytes:
    """Return a program of the kernel's packet filter: whole UDP packets over IPv4 to a port."""
    program = (
        (0x30, 0, 0, 9),  # load the protocol
        (0x15, 0, 6, _UDP),
        (0x28, 0, 0, 6),  # load the flags and the fragment's offset
        (0x45, 4, 0, 0x3FFF),
        (0xB1, 0, 0, 0),  # load the length of the IP header
        (0x48, 0, 0, 2),  # load the port of the destination
        (0x15, 0, 1, port),
        (0x06, 0, 0, 0xFFFF),
        (0x06, 0, 0, 0),
    )
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


class PacketSocket:
    """Messages to a port of an interface, and from it. Close it, or use it as a context manager.

    Raises OSError: without root, or if there is no such interface.
    """

    def __init__(self, interface: str, port: int) -> None:
        self._interface, self._port = interface, port
        self._other = SERVER_PORT if port == CLIENT_PORT else CLIENT_PORT
        connection = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, 0)
        try:
            program = ctypes.create_string_buffer(_filter(port))
            pointer = struct.pack("HL", len(_filter(port)) // 8, ctypes.addressof(program))
            connection.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, pointer)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            connection.bind((interface, _IP))  # only now, so that nothing arrives before the filter
            connection.setblocking(False)
        except OSError:
            connection.close()
            raise
        self._socket = trio.socket.from_stdlib_socket(connection)

    def __enter__(self) -> PacketSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    async def receive(self) -> tuple[DhcpMessage, bytes]:
        """Return the next message, and the hardware address of its sender. Everything else is skipped."""
        while True:
            data, (_, _, _, _, mac) = await self._socket.recvfrom(MAX_SIZE + 100)
            message = decode(payload(bytes(data)))
            if message is not None:
                return message, bytes(mac)

    async def send(
        self, message: DhcpMessage, source: IPv4Address, target: IPv4Address = BROADCAST, mac: bytes = EVERYBODY
    ) -> None:
        """Send a message. Raises OSError, for example while the interface is down."""
        data = packet(encode(message), (source, self._port), (target, self._other))
        await self._socket.sendto(data, (self._interface, _IP, 0, 0, mac))

    async def send_routed(self, message: DhcpMessage, source: IPv4Address, target: IPv4Address) -> None:
        """Send a message from an address of the interface, so that the kernel finds the way to the target."""
        with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self._interface.encode())
            await connection.bind((str(source), self._port))
            await connection.sendto(encode(message), (str(target), self._other))


def packet(data: bytes, source: tuple[IPv4Address, int], target: tuple[IPv4Address, int]) -> bytes:
    """Return an IPv4 packet with UDP."""
    length = 8 + len(data)
    addresses = source[0].packed + target[0].packed
    ports = struct.pack("!HH", source[1], target[1])
    pseudo = addresses + struct.pack("!BBH", 0, _UDP, length) + ports + struct.pack("!HH", length, 0) + data
    udp = ports + struct.pack("!HH", length, checksum(pseudo) or 0xFFFF) + data
    head = struct.pack("!BBHHHBBH", 0x45, 0x10, 20 + length, 0, 0, 64, _UDP, 0)
    return head[:10] + struct.pack("!H", checksum(head + addresses)) + addresses + udp


def payload(data: bytes) -> bytes:
    """Return the content of an IPv4 packet with UDP; empty if it is malformed.

    The checksum of UDP is not verified: between virtual interfaces, packets have none yet.
    """
    if len(data) < 28 or data[0] >> 4 != 4:
        return b""
    start, total = (data[0] & 0xF) * 4, int.from_bytes(data[2:4], "big")
    if start < 20 or start + 8 > total or total > len(data) or data[9] != _UDP:
        return b""
    length = int.from_bytes(data[start + 4 : start + 6], "big")
    return data[start + 8 : start + length] if 8 <= length <= total - start else b""


def checksum(data: bytes) -> int:
    """Return the checksum of the internet (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
