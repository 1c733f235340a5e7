"""Grouping of peer addresses for limits, and host names that mean this computer. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from rpc.carrier import Peer


def group_of(peer: Peer) -> str:
    """Return the key under which a peer is counted: its IPv4 address, its IPv6 /64 (one subscriber), or "local"."""
    address = peer.ip
    if address is None:
        return "local"
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))


def host_of(authority: str) -> str:
    """Return the host of `host[:port]`, lower-case, without brackets or trailing dot."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0].lower()
    return authority.partition(":")[0].rstrip(".").lower()


def is_loopback_name(host: str) -> bool:
    """Return True if `host` always means the browser's own computer: localhost names and loopback addresses."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_host(authority: str, names: Iterable[str]) -> bool:
    """Return True if `authority` is a loopback name or one of `names`.

    Other names may be pointed to 127.0.0.1 by an attacker (DNS rebinding).
    """
    host = host_of(authority)
    return is_loopback_name(host) or host in {name.rstrip(".").lower() for name in names}
