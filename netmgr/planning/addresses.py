"""IPv4 configuration of an interface, from a static address or from a lease. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Final

import msgspec

from netmgr.model.facts import AddressLease
from netmgr.model.network import UsableNetwork

EVERYTHING: Final = IPv4Network("0.0.0.0/0")
SHORTEST_PREFIX: Final = 8
"""Shorter prefixes are refused: the kernel's route to the subnet, with metric 0, would replace the default route of
every other interface. 8 is the prefix of the largest networks that were ever assigned (class A)."""
SMALLEST_MTU: Final = 1280  # of IPv6 (RFC 8200), which the kernel switches off below; a smaller one slows everything
LARGEST_MTU: Final = 9000  # of Ethernet with jumbo frames


class Ipv4(msgspec.Struct, frozen=True, kw_only=True):
    """IPv4 configuration, without metrics."""

    addresses: frozenset[IPv4Interface] = frozenset()
    routes: tuple[tuple[IPv4Network, IPv4Address | None], ...] = ()
    """Destination and gateway. None: the destination is on the link. Destinations are different."""
    dns: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    mtu: int | None = None


def ipv4_of(network: UsableNetwork, lease: AddressLease | None) -> Ipv4:
    """Return the configuration of a connected network: from its static address, or from the lease if there is one.

    Unusable parts of a lease are left out: a server may be wrong, or lie.
    """
    if network.static is not None:
        address, gateway = network.static.address, network.static.gateway
        return Ipv4(
            addresses=frozenset([address]),
            routes=_routes(address, [(EVERYTHING, gateway)] if gateway is not None else []),
            dns=tuple(map(str, network.dns)),
        )
    if lease is None or not usable(lease.address):
        return Ipv4()
    default = [(EVERYTHING, lease.gateway)] if lease.gateway is not None else []
    servers = [*network.dns, *(server for server in lease.dns if _is_host(server))]
    return Ipv4(
        addresses=frozenset([lease.address]),
        routes=_routes(lease.address, lease.routes or default),
        dns=tuple(map(str, dict.fromkeys(servers))),
        domains=lease.domains,
        mtu=lease.mtu if lease.mtu is not None and SMALLEST_MTU <= lease.mtu <= LARGEST_MTU else None,
    )


def usable(address: IPv4Interface) -> bool:
    """Return whether a leased address can be that of a computer."""
    return address.network.prefixlen >= SHORTEST_PREFIX and _is_host(address.ip)


def _routes(
    address: IPv4Interface, routes: Iterable[tuple[IPv4Network, IPv4Address]]
) -> tuple[tuple[IPv4Network, IPv4Address | None], ...]:
    """Return usable routes, with a host route on the link to each gateway outside the subnet, without which the kernel
    refuses the gateway. The gateway 0.0.0.0 means that the destination is on the link (RFC 3442).
    """
    planned: dict[IPv4Network, IPv4Address | None] = {}
    for destination, gateway in routes:
        if destination.is_multicast or destination.is_loopback:
            continue
        if gateway.is_unspecified and destination != EVERYTHING:
            planned.setdefault(destination, None)
        elif _is_host(gateway) and gateway != address.ip:
            if gateway not in address.network:
                planned.setdefault(IPv4Network(gateway), None)
            planned.setdefault(destination, gateway)
    return tuple(planned.items())


def _is_host(address: IPv4Address) -> bool:
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_reserved)
