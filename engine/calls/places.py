"""Limits the calls in progress at a resource so that no client can use up the limit: pure."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final

SHARE: Final = 3
"""A client may hold at most this many times as many places as are free. A single client gets three quarters of all
places, two clients get three sevenths each; some are always free for the next client. (Choudhury and Hahne, Dynamic
queue length thresholds, 1998.)"""


@dataclass(slots=True)
class Holder:
    """A client and the number of places that it holds."""

    identity: Any  # rpc.carrier.Identity, None on a server without authentication
    peer: Any  # rpc.carrier.Peer, None if unknown
    taken: int = 0

    def __str__(self) -> str:
        address = self.peer.addr() if self.peer is not None else None
        where = ":".join(map(str, address[:2])) if isinstance(address, tuple) else "a local socket"
        return f"{self.identity.entity} at {where}" if self.identity is not None else where


class Places:
    """`limit` places, shared by clients; a client is any hashable value."""

    __slots__ = ("holders", "limit", "taken")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self.holders: dict[Hashable, Holder] = {}

    def take(self, client: Hashable, identity: Any = None, peer: Any = None) -> bool:
        """Take a place for a client; returns False if no place is free or the client already holds its share."""
        holder = self.holders.get(client)
        free = self.limit - self.taken
        if free <= 0 or (holder is not None and holder.taken >= SHARE * free):
            return False
        if holder is None:
            holder = self.holders[client] = Holder(identity, peer)
        holder.taken += 1
        self.taken += 1
        return True

    def give_back(self, client: Hashable) -> None:
        """Give back a place of a client."""
        self.taken -= 1
        holder = self.holders[client]
        holder.taken -= 1
        if not holder.taken:
            del self.holders[client]

    def refusal(self, client: Hashable) -> str:
        """Return, for people, why a client gets no place: how many are taken, and by which clients."""
        by_count = sorted(self.holders.values(), key=lambda holder: -holder.taken)
        summary = ", ".join(f"{holder} {holder.taken}" for holder in by_count[:3])
        others = sum(holder.taken for holder in by_count[3:])
        text = (
            f"{self.taken} of {self.limit} calls in flight, held by {summary}{f', others {others}' if others else ''}"
        )
        holder = self.holders.get(client)
        if holder is None or self.taken >= self.limit:
            return text
        return f"{text}; this client holds its share, and the rest is reserved for other clients"
