"""Who calls through a reverse proxy, by what the proxy says.

A proxy connects from its own address for everybody, and appends who connected to it to X-Forwarded-For. What was in
that field before is anybody's word: so it is read from its end, and only as far as proxies have written it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TYPE_CHECKING, Final, TypeAlias

from rpc.carrier import Peer

if TYPE_CHECKING:
    from rpc.asgi import ASGIApp, Receive, Scope, Send

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

FIELD: Final = "x-forwarded-for"


def network(text: str) -> Network:
    """An address or a network as people write it; ValueError says what is wrong with it."""
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(f"{error}; an address such as 10.0.0.7, or a network such as 10.0.0.0/24") from None


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies in front of a server: whoever connects from one of `networks` is believed about its clients."""

    networks: tuple[Network, ...] = ()

    def trusts(self, peer: Peer) -> bool:
        """Whether `peer` is one of the proxies."""
        at = peer.ip if self.networks else None
        return at is not None and self._has(at)

    def client(self, peer: Peer, headers: Iterable[tuple[str, str]]) -> Peer:
        """Who makes a request that came from `peer`: itself, unless it is a proxy that names somebody readable."""
        at = peer.ip if self.networks else None
        if at is None or not self._has(at):
            return peer
        named = ",".join(value for name, value in headers if name == FIELD)
        while at is not None and self._has(at):
            named, _, last = named.rpartition(",")
            at = Peer((_host(last),)).ip  # its port is nobody's business
            if at is not None:
                peer = Peer((str(at), 0))
        return peer

    def _has(self, address: Address) -> bool:
        return any(address in one for one in self.networks)  # False where the versions differ


NO_PROXIES: Final = Proxies()


def behind(proxies: Proxies, app: ASGIApp) -> ASGIApp:
    """`app`, which is told the clients of `proxies` in the place of these."""
    if not proxies.networks:
        return app

    async def told(scope: Scope, receive: Receive, send: Send) -> None:
        headers = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        client = proxies.client(Peer(scope.get("client")), headers)
        await app({**scope, "client": client.address}, receive, send)

    return told


def _host(entry: str) -> str:
    """An entry of the field without its port, if it has one."""
    text = entry.strip()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
