"""Where a machine is announced, how kernel messages are read, and how `machine discover` interprets answers."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest

from command.machine.discover import FoundMachine, address_of, machines_of
from rpc.network.mdns import AAAA, SRV, TXT, A, DnsRecord, Service
from rpc.network.network_interfaces import Interface, read_interfaces
from runtime.parts.mdns.places import ADDRESSES, places
from runtime.parts.mdns.records import SERVICE

LO = Interface(1, "lo", True, False, (IPv4Address("127.0.0.1"), IPv6Address("::1")))
ETH = Interface(2, "eth0", False, True, (IPv4Address("192.168.1.5"), IPv6Address("fe80::5")))
WLAN = Interface(3, "wlan0", False, True, (IPv4Address("10.0.0.5"),))
TUN = Interface(4, "tun0", False, False, (IPv4Address("10.8.0.1"),))
BARE = Interface(5, "eth1", False, True, ())


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        (["127.0.0.1:8080", "[::1]:8080"], {"lo": ["127.0.0.1"]}),
        (["[::1]:8080"], {"lo": ["::1"]}),
        (["0.0.0.0:8080"], {"eth0": ["192.168.1.5"], "wlan0": ["10.0.0.5"]}),
        (["0.0.0.0:8080", "[::]:8080"], {"eth0": ["192.168.1.5", "fe80::5"], "wlan0": ["10.0.0.5"]}),
        (["10.0.0.5:8080"], {"wlan0": ["10.0.0.5"]}),
        (["[fe80::5%eth0]:8080"], {"eth0": ["fe80::5"]}),
        (["10.8.0.1:8080"], {}),
        (["/run/machine.sock"], {}),
        ([], {}),
    ],
)
def test_where(bound: Sequence[str], expected: dict[str, list[str]]) -> None:
    result = places(bound, [LO, ETH, WLAN, TUN, BARE])
    assert {place.interface.name: [str(address) for address in place.addresses] for place in result} == expected
    assert all(place.port == 8080 for place in result)


def test_one_interface_with_very_many_addresses() -> None:
    many = Interface(2, "eth0", False, True, tuple(ip_address(f"10.1.0.{number}") for number in range(1, 100)))
    assert len(places(["0.0.0.0:1"], [many])[0].addresses) == ADDRESSES


def attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def link(index: int, name: str, flags: int) -> bytes:
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 1, index, flags, 0) + attribute(3, name.encode() + b"\0")


def address(index: int, text: str, flags: int = 0, *, local: str = "") -> bytes:
    result = ip_address(text)
    family = socket.AF_INET if result.version == 4 else socket.AF_INET6
    return (
        struct.pack("=BBBBI", family, 24, flags & 0xFF, 0, index)
        + attribute(1, result.packed)
        + (attribute(2, ip_address(local).packed) if local else b"")
        + attribute(8, struct.pack("=I", flags))
    )


UP, RUNNING, LOOPBACK, MULTICAST = 0x1, 0x40, 0x8, 0x1000


def test_messages_of_the_kernel() -> None:
    links = [
        link(3, "wlan0", UP | RUNNING | MULTICAST),
        link(1, "lo", UP | RUNNING | LOOPBACK),
        link(2, "eth0", UP | MULTICAST),  # no cable
        link(4, "eth1", MULTICAST),
    ]
    addresses = [
        address(1, "127.0.0.1", 0x80),
        address(3, "10.0.0.9", local="10.0.0.5"),
        address(3, "10.0.0.6", 0x01),  # a second address in the same network
        address(3, "fe80::1", 0x80),
        address(3, "fe80::2", 0x40),  # tentative
        address(3, "fe80::3", 0x08),  # a duplicate
        address(3, "fe80::4", 0x20),  # deprecated
    ]
    assert read_interfaces(links, addresses) == (
        Interface(1, "lo", True, False, (IPv4Address("127.0.0.1"),)),
        Interface(3, "wlan0", False, True, tuple(map(ip_address, ("10.0.0.5", "10.0.0.6", "fe80::1")))),
    )


def test_machines_that_answered() -> None:
    host = ("Rover-example", "local")
    records = [
        DnsRecord(("rover-example", *SERVICE), SRV, Service(8080, host), 10),
        DnsRecord(("rover.example", *SERVICE), SRV, Service(8080, host), 10),
        DnsRecord(("rover-example", *SERVICE), TXT, (b"grpc",), 10),
        DnsRecord(("rover-example", "local"), AAAA, IPv6Address("fe80::1"), 10),
        DnsRecord(("rover-example", "local"), A, IPv4Address("10.0.0.1"), 10),
        DnsRecord(("rover-example", "local"), A, IPv4Address("10.0.0.1"), 10),
        DnsRecord(("printer", "_ipp", "_tcp", "local"), SRV, Service(631, ("printer", "local")), 10),
        DnsRecord(("arm", *SERVICE), SRV, Service(80, ("arm", "local")), 10),
    ]
    arm, rover = machines_of(records, "eth0")
    assert arm == FoundMachine("arm", "arm.local", 80, (), "eth0", {})
    assert rover.name == "rover.example"
    assert rover.addresses == ("10.0.0.1", "fe80::1")
    assert address_of(rover) == "10.0.0.1:8080"
    assert address_of(arm) == "arm.local:80"
    assert address_of(FoundMachine("a", "a.local", 1, ("fe80::1",), "x", {})) == "[fe80::1]:1"
