"""Names for which a machine gets a certificate: pure.

A machine reports its own names and addresses, so only those that are useless outside its own network are accepted:
plain host names, the same names under `.local`, and addresses that are not globally routed. A public name comes from
`network.fqdn` in the configuration, which an owner writes. Names of the cloud's own port are not available to machines.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from cloud.domain.certificates.issue import is_dns_name
from schema import ConfigError
from schema.document import check_address

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
MAX_NAMES: Final = 40  # names in one certificate


def names_for(
    host_name: str,
    document: Mapping[str, Any],
    claimed: Iterable[str],
    *,
    reserved: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the names of a part's certificate, beginning with `host_name`, its name in the cloud.

    `claimed` are host names and addresses that the machine reports; `reserved` are names that belong to others, and may
    begin with `*.`. Invalid names and names that a machine may not claim are left out.
    """
    network = document.get("network")
    configured = _configured(network) if isinstance(network, Mapping) else ()
    dashed = host_name.replace(".", "-")[:63].rstrip("-")
    candidates = [host_name, f"{dashed}.local", *configured]
    for text in claimed:
        candidates += _acceptable(text.strip().rstrip(".").lower())
    valid = [name for name in candidates if _is_address(name) or is_dns_name(name)]
    usable = [name for name in valid if name not in reserved and f"*.{name.partition('.')[2]}" not in reserved]
    return tuple(dict.fromkeys([*list(dict.fromkeys(usable))[: MAX_NAMES - len(LOOPBACK)], *LOOPBACK]))


def _configured(network: Mapping[str, Any]) -> Iterable[str]:
    """Yield the names in the configuration."""
    fqdn = network.get("fqdn")
    if isinstance(fqdn, str) and fqdn:
        yield canonical(fqdn)
    bind = network.get("bind_address")
    try:
        host = check_address(bind, path="")[0] if isinstance(bind, str) else ""
    except ConfigError:
        host = ""
    if host:
        yield from _acceptable(canonical(host))


def _acceptable(text: str) -> Iterable[str]:
    """Yield the acceptable names for one name or address that a machine reports."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        label = text.removesuffix(".local")
        if "." not in label and label != "localhost" and is_dns_name(label):
            yield from (label, f"{label}.local")
        return
    if not (address.is_global or address.is_loopback or address.is_multicast or address.is_unspecified):
        yield str(address)


def canonical(name: str) -> str:
    """Return a name as in certificates: lower-case, without brackets or trailing dot; addresses in short form."""
    text = name.strip().strip("[]").rstrip(".").lower()
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
