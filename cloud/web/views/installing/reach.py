"""The address of the cloud that other computers can use: pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from rpc.access import is_loopback_name

_LOCAL = "Only the computer of the cloud can use the address {address}. "
_START = "Start machine-cloud with --listen 0.0.0.0:8090 --tls, or with --url and the address of a proxy."


def is_unreachable(host: str) -> bool:
    """Return whether other computers cannot use a host: loopback, link-local, or unspecified."""
    if is_loopback_name(host):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_link_local or address.is_unspecified


def reachable(asked: str, base: str, outward: Sequence[str]) -> tuple[str, str]:
    """Return the URL of the cloud for other computers, and a warning if there is none.

    `asked` is the URL at which the caller uses the cloud, `base` that of its links, and `outward` are the addresses of
    the computer of the cloud.
    """
    if not is_unreachable(urlsplit(asked).hostname or ""):
        return asked, ""
    parts = urlsplit(base)
    host = parts.hostname or ""
    if not is_unreachable(host):
        return base, ""
    listens_everywhere = host in ("0.0.0.0", "::")
    own = next((address for address in outward if not is_unreachable(address)), "")
    if not listens_everywhere or not own:
        return asked, _LOCAL.format(address=asked) + _START
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{f'[{own}]' if ':' in own else own}{port}", ""
