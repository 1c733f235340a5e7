"""Check of webhook addresses against server-side request forgery (SSRF). Pure.

Tenants must not reach through the cloud what only the cloud can reach. The URL is checked when it is configured; all
addresses to which it resolves are checked when it is called.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_URL: Final = 2048  # characters

# Refused even if allowed by configuration: no webhook receivers have these addresses.
_NEVER: Final[tuple[tuple[str, str], ...]] = (
    ("0.0.0.0/8", "this network"),
    ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "no address"),
    ("fe80::/10", "link-local"),
    ("ff00::/8", "multicast"),
    ("100.100.100.200/32", "metadata of a cloud"),  # Alibaba Cloud
    ("168.63.129.16/32", "metadata of a cloud"),  # Azure
    ("192.0.0.192/32", "metadata of a cloud"),  # Oracle Cloud
    ("fd00:ec2::254/128", "metadata of a cloud"),  # Amazon EC2
    ("fd20:ce::254/128", "metadata of a cloud"),  # Google Cloud
)
# Refused unless allowed by name or network. From the special-purpose registries of IANA (RFC 6890).
_PRIVATE: Final[tuple[tuple[str, str], ...]] = (
    ("127.0.0.0/8", "loopback"),
    ("10.0.0.0/8", "private"),
    ("172.16.0.0/12", "private"),
    ("192.168.0.0/16", "private"),
    ("100.64.0.0/10", "shared by a provider's customers"),
    ("192.0.0.0/24", "special purpose"),
    ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "special purpose"),
    ("198.18.0.0/15", "benchmarks"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("::1/128", "loopback"),
    ("fc00::/7", "private"),
    ("fec0::/10", "private"),
    ("100::/64", "discarded"),
    ("2001::/23", "special purpose"),  # Teredo and others
    ("2001:db8::/32", "documentation"),
    ("3fff::/20", "documentation"),
    ("5f00::/16", "segment routing"),
    ("64:ff9b:1::/48", "private translation"),
    ("::/3", "not assigned"),  # the rest of IPv6 outside 2000::/3
    ("4000::/2", "not assigned"),
    ("8000::/1", "not assigned"),
)
_RULES: Final = tuple(
    (ipaddress.ip_network(network), why, never)
    for table, never in ((_NEVER, True), (_PRIVATE, False))
    for network, why in table
)
_EMBEDDED: Final = (  # IPv6 networks that embed an IPv4 address, and the number of bits to its right
    (ipaddress.IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped, RFC 4291
    (ipaddress.IPv6Network("::ffff:0:0:0/96"), 0),  # IPv4-translated, RFC 2765
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),  # NAT64, RFC 6052
    (ipaddress.IPv6Network("2002::/16"), 80),  # 6to4, RFC 3056
    (ipaddress.IPv6Network("::/96"), 0),  # IPv4-compatible, RFC 4291
)
# Ports of other protocols, some of which could interpret an HTTP request as commands: Fetch Standard, "bad port".
# fmt: off
_BAD_PORTS: Final = frozenset({
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530,
    531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190,
    5060, 5061, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
})
# fmt: on
_PRINTED = re.compile(r"[!-~]+\Z")
_UNWISE = re.compile(r"[\\<>\"^`{}|]")
_HOST = re.compile(
    r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.?\Z"
)
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)\Z")
_ALLOW: Final = "an administrator of the cloud can allow it"


class WebhookRefused(ValueError):
    """URL or address that webhooks may not call."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(f"{reason}: {remedy}" if remedy else reason)
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """Parsed webhook URL. `host` is a lower-case name without trailing dot, or an address without brackets."""

    scheme: str
    host: str
    port: int
    path: str  # including the query
    address: Address | None = None  # set if the host is an address


@dataclass(frozen=True, slots=True)
class Allow:
    """Private hosts and networks that may be called. Create it with `parse`."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, entries: Iterable[str]) -> Allow:
        """Parse names, addresses and networks, such as `hooks.internal` or `192.168.0.0/16`; ValueError if invalid."""
        hosts, networks = set(), []
        for entry in entries:
            text = entry.strip()
            try:
                network = ipaddress.ip_network(text.strip("[]"), strict=True)
            except ValueError:
                name = text.lower().rstrip(".")
                if not name or not _HOST.match(name) or _NUMBER.match(name.rpartition(".")[2]):
                    raise ValueError(
                        f"{entry!r} is not a host name, address or network: write for example hooks.internal"
                    ) from None
                hosts.add(name)
            else:
                networks.append(network)
        return cls(frozenset(hosts), tuple(networks))

    def has(self, host: str, address: Address) -> bool:
        """Return True if `address`, which belongs to `host`, is allowed by host name or network."""
        return host in self.hosts or any(address in network for network in self.networks)


NOTHING: Final = Allow()


def parse_url(url: str) -> WebhookTarget:
    """Parse a webhook URL without resolving its host; Refused if the URL may not be called."""
    if len(url) > MAX_URL:
        raise WebhookRefused(f"the URL has {len(url)} characters", f"use at most {MAX_URL}")
    if not _PRINTED.match(url) or _UNWISE.search(url):
        raise WebhookRefused(
            "the URL is empty or contains invalid characters", "write for example https://example.com/hook"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise WebhookRefused(f"the URL cannot be read: {error}", "write for example https://example.com/hook") from None
    scheme = parts.scheme.lower()
    if scheme not in {"http", "https"}:
        raise WebhookRefused(f"the scheme of the URL is {scheme or 'missing'}", "write https:// or http://")
    if "@" in parts.netloc:
        raise WebhookRefused(
            "the URL contains a user or password", 'use "auth": {"basic": {"username": ..., "password": ...}}'
        )
    if parts.fragment:
        raise WebhookRefused("the URL has a fragment, which is never sent", "remove the part from #")
    host = (parts.hostname or "").lower()
    address = _literal(host, bracketed=parts.netloc.startswith("["))
    if parts.netloc.endswith(":"):
        raise WebhookRefused("the URL has a colon without a port", "remove it")
    port = port if port is not None else 443 if scheme == "https" else 80
    if port in _BAD_PORTS:
        raise WebhookRefused(f"port {port} belongs to another protocol", "let the receiver listen on another port")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebhookTarget(scheme, host.rstrip(".") if address is None else str(address), port, path, address)


def check_address(address: Address | str, host: str = "", allow: Allow = NOTHING) -> None:
    """Raise Refused if an address may not be called; `host` is the name that resolved to it."""
    parsed = ipaddress.ip_address(address) if isinstance(address, str) else address
    for form in _forms(parsed):
        for network, why, never in _RULES:
            if form in network and (never or not any(allow.has(host, form) for form in _forms(parsed))):
                of = f" of {host}" if host and host != str(parsed) else ""
                raise WebhookRefused(f"the address {parsed}{of} may not be called: {why}", "" if never else _ALLOW)


def _forms(address: Address) -> tuple[Address, ...]:
    """Return the address to check: the IPv4 address embedded in an IPv6 address, otherwise the address itself."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            address = ipaddress.IPv6Address(int(address))
        if int(address) > 1:
            for network, shift in _EMBEDDED:
                if address in network:
                    return (ipaddress.IPv4Address((int(address) >> shift) & 0xFFFFFFFF),)
    return (address,)


def _literal(host: str, *, bracketed: bool) -> Address | None:
    """Return the address of a literal host, None for a name; Refused for invalid hosts and unusual address forms."""
    if bracketed:
        try:
            if "%" in host:
                raise ValueError("a zone is valid only on one computer")
            return ipaddress.IPv6Address(host)
        except ValueError as error:
            raise WebhookRefused(
                f"{host!r} is not an IPv6 address: {error}", "write for example http://[2001:db8::1]/"
            ) from None
    if len(host) > 253 or not _HOST.match(host):
        raise WebhookRefused(
            f"{host!r} is not a host name" if host else "the URL has no host",
            "write for example https://example.com/hook",
        )
    if not _NUMBER.match(host.rstrip(".").rpartition(".")[2]):
        return None
    try:
        return ipaddress.IPv4Address(host)  # four decimal numbers without leading zeros
    except ValueError:
        raise WebhookRefused(
            f"{host!r} is an address in an unusual form", "write four decimal numbers, for example 192.0.2.1"
        ) from None
