"""On which interfaces, with which addresses, a machine that listens somewhere is announced. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from typing import Final

from rpc.interfaces import Address, Interface

ADDRESSES: Final = 8  # of one interface: what more of them do in one message is make it too long


@dataclass(frozen=True, slots=True)
class Place:
    """One interface, and what is announced there."""

    interface: Interface
    port: int
    addresses: tuple[Address, ...]


def places(bound: Iterable[str], found: Sequence[Interface]) -> tuple[Place, ...]:
    """For `bound` addresses such as `0.0.0.0:8080`: a server that only this computer reaches is announced to it alone.

    A server on every address is announced on every interface that can carry it, one on a certain address where that is.
    """
    listening = [(host, port) for one in bound if (host := _host(one)) is not None and (port := _port(one))]
    result = []
    for interface in found:
        ports = [
            (port, address)
            for address in interface.addresses
            for host, port in listening
            if _reaches(host, address, interface)
        ]
        if interface.loopback:
            ports = [one for one in ports if isinstance(one[1], IPv4Address)] or ports
        if ports and (interface.multicast or interface.loopback):
            result.append(Place(interface, ports[0][0], tuple(address for _, address in ports)[:ADDRESSES]))
    return tuple(result)


def _reaches(host: Address, address: Address, interface: Interface) -> bool:
    if host.version != address.version:
        return False
    return not interface.loopback if host.is_unspecified else host.packed == address.packed


def _host(bound: str) -> Address | None:
    try:
        return ip_address(bound.rpartition(":")[0].strip("[]"))
    except ValueError:
        return None  # a Unix socket


def _port(bound: str) -> int:
    return int(bound.rpartition(":")[2])
