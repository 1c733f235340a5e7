"""Addresses of a computer with Windows."""

from __future__ import annotations

import socket
import sys
from ipaddress import IPv4Address, IPv6Address, ip_address

assert sys.platform == "win32"


def own_addresses() -> tuple[IPv4Address | IPv6Address, ...]:
    """Return the addresses to which the name of this computer resolves. OSError if it does not resolve."""
    texts = {str(entry[4][0]).partition("%")[0] for entry in socket.getaddrinfo(socket.gethostname(), None)}
    return tuple(ip_address(text) for text in sorted(texts))
