"""Clients behind reverse proxies, according to X-Forwarded-For.

A proxy connects from its own address and appends the address of its client to X-Forwarded-For. Earlier entries may be
forged by the client, so the field is read from its end, and only as far as trusted proxies have written it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TYPE_CHECKING, Final, TypeAlias

from rpc.carrier import Peer

if TYPE_CHECKING:
    from rpc.http.asgi import ASGIApp, Receive, Scope, Send

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

FIELD: Final = "x-forwarded-for"


def parse_network(text: str) -> Network:
    """Parse an IP address or network; ValueError with an explanation if it is invalid."""
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(f"{error}; an address such as 10.0.0.7, or a network such as 10.0.0.0/24") from None


@dataclass(frozen=True, slots=True)
class Proxies:
    """Trusted proxies of a server: peers in `networks` are trusted to report their clients."""

    networks: tuple[Network, ...] = ()

    def trusts(self, peer: Peer) -> bool:
        """Return True if `peer` is a trusted proxy."""
        at = peer.ip if self.networks else None
        return at is not None and self._has(at)

    def client(self, peer: Peer, headers: Iterable[tuple[str, str]]) -> Peer:
        """Return the client of a request from `peer`: the client named by a trusted proxy, otherwise `peer` itself."""
        at = peer.ip if self.networks else None
        if at is None or not self._has(at):
            return peer
        forwarded = ",".join(value for name, value in headers if name == FIELD)
        while at is not None and self._has(at):
            forwarded, _, last = forwarded.rpartition(",")
            at = Peer((_host(last),)).ip  # the port is not needed
            if at is not None:
                peer = Peer((str(at), 0))
        return peer

    def _has(self, address: Address) -> bool:
        return any(address in trusted for trusted in self.networks)  # False for different IP versions


NO_PROXIES: Final = Proxies()


def behind_proxies(proxies: Proxies, app: ASGIApp) -> ASGIApp:
    """Return `app` wrapped so that its scopes have the clients of trusted proxies instead of the proxies."""
    if not proxies.networks:
        return app

    async def with_client(scope: Scope, receive: Receive, send: Send) -> None:
        headers = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        client = proxies.client(Peer(scope.get("client")), headers)
        await app({**scope, "client": client.address}, receive, send)

    return with_client


def _host(entry: str) -> str:
    """Return an entry of the field without its port."""
    text = entry.strip()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
