"""For which names a machine gets a certificate: pure.

A machine says itself how it is called and where it is, so only what is of no use outside its own network is believed:
a plain host name, the same below `.local`, and addresses that are not routed in the internet. A public name is in
`network.fqdn` of the configuration, which an owner writes. Names of the cloud's own port are for nobody else.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from cloud.certificates.issue import is_dns_name
from schema.errors import ConfigError
from schema.network import check_address

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
MOST: Final = 40  # names of one certificate


def names_for(
    host_name: str,
    document: Mapping[str, Any],
    claimed: Iterable[str],
    *,
    reserved: Collection[str] = (),
) -> tuple[str, ...]:
    """The names of a part's certificate, its name in the cloud (`host_name`) first.

    `claimed` are host names and addresses that the machine says it has; `reserved` are of others. What is neither a
    name nor an address, and what no machine may claim, is left out.
    """
    network = document.get("network")
    owned = _given(network) if isinstance(network, Mapping) else ()
    dashed = host_name.replace(".", "-")[:63].rstrip("-")
    wanted = [host_name, f"{dashed}.local", *owned]
    for text in claimed:
        wanted += _believed(text.strip().rstrip(".").lower())
    kept = [name for name in wanted if (_is_address(name) or is_dns_name(name)) and name not in reserved]
    return tuple(dict.fromkeys([*list(dict.fromkeys(kept))[: MOST - len(LOOPBACK)], *LOOPBACK]))


def _given(network: Mapping[str, Any]) -> Iterable[str]:
    """What the configuration says."""
    fqdn = network.get("fqdn")
    if isinstance(fqdn, str) and fqdn:
        yield canonical(fqdn)
    bind = network.get("bind_address")
    try:
        host = check_address(bind, path="")[0] if isinstance(bind, str) else ""
    except ConfigError:
        host = ""
    if host:
        yield from _believed(canonical(host))


def _believed(text: str) -> Iterable[str]:
    """What is made of one word of a machine."""
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
    """A name as certificates have it: lower-case, without brackets and closing dot; addresses in their short form."""
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
