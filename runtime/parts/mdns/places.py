"""The interfaces and addresses with which a machine is announced. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from typing import Final

from rpc.network import Address, Interface

ADDRESSES: Final = 8  # announced for one interface; more would make messages too long


@dataclass(frozen=True, slots=True)
class AnnouncedPlace:
    """An interface, with the port and the addresses that are announced there."""

    interface: Interface
    port: int
    addresses: tuple[Address, ...]


def places(bound: Iterable[str], interfaces: Sequence[Interface]) -> tuple[AnnouncedPlace, ...]:
    """Return where to announce a server that listens at `bound`, such as `0.0.0.0:8080`; `interfaces` are all of them.

    A server on loopback is announced on the loopback interface only, a server on all addresses on every multicast
    interface, and a server on a certain address on the interface that has it.
    """
    listening = [(host, port) for address in bound if (host := _host(address)) is not None and (port := _port(address))]
    result = []
    for interface in interfaces:
        ports = [
            (port, address)
            for address in interface.addresses
            for host, port in listening
            if _reaches(host, address, interface)
        ]
        if interface.loopback:
            ports = [(port, address) for port, address in ports if isinstance(address, IPv4Address)] or ports
        if ports and (interface.multicast or interface.loopback):
            result.append(AnnouncedPlace(interface, ports[0][0], tuple(address for _, address in ports)[:ADDRESSES]))
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
