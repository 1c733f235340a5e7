"""Whom an address counts as, and which names lead to this computer only. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from rpc.carrier import Peer


def group_of(peer: Peer) -> str:
    """The key under which a peer is counted: its IPv4 address, its IPv6 /64 (one subscriber), or "local"."""
    address = peer.ip
    if address is None:
        return "local"
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))


def host_of(authority: str) -> str:
    """The host of `host[:port]`, lower-case, without brackets and closing dot."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0].lower()
    return authority.partition(":")[0].rstrip(".").lower()


def is_loopback_name(host: str) -> bool:
    """Whether a browser that was given `host` can only mean its own computer: localhost and loopback addresses."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_host(authority: str, names: Iterable[str]) -> bool:
    """Whether a request to `authority` may be meant for a server bound to loopback that is also called `names`.

    A name that an attacker points to 127.0.0.1 (DNS rebinding) is none of these.
    """
    host = host_of(authority)
    return is_loopback_name(host) or host in {name.rstrip(".").lower() for name in names}
