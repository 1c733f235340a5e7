"""Admission of connections to a port: a limit for each address, and a reserve for clients with a key.

A connection starts as a stranger. It becomes known once a call has presented a valid token or, on a server without
keys, once it has made a call. On a server with keys, strangers have at most half of all places, and each address has a
limited share of these; a new connection replaces the oldest stranger, so that clients with a key can always connect. On
a server without keys, connections beyond the limit of their address are refused.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

import trio

from rpc.access.addresses import group_of
from rpc.access.forwarded import Proxies
from rpc.carrier import Headers, Peer
from rpc.statistics import Statistics

_log = logging.getLogger("rpc.port")
_LOG_INTERVAL: Final = 60.0  # seconds between two log lines about refused or evicted connections
_EVICTION: Final = 2.0  # seconds that a new connection waits for an evicted connection to close


class ConnectionPlace:
    """Place of one connection; release it with `Admission.leave`."""

    __slots__ = ("_admission", "abort", "gone", "group", "peer", "recognized", "scope")

    def __init__(self, admission: Admission, peer: Peer) -> None:
        self._admission = admission
        self.peer = peer
        self.group = group_of(peer)
        self.scope = trio.CancelScope()  # of the connection's task
        self.abort: Callable[[], None] = lambda: None  # ends the connection without a closing handshake
        self.recognized = trio.Event()
        self.gone = trio.Event()

    @property
    def through_proxy(self) -> bool:
        """True if the peer is a trusted proxy."""
        return self._admission.proxies.trusts(self.peer)

    def recognize(self, *, key: bool) -> None:
        """Mark the connection as known after an admitted request; `key` is True if it presented a valid token.

        On a server with keys, a request without token does not count.
        """
        if not self.recognized.is_set() and (key or not self._admission.keyed()):
            self.recognized.set()
            self._admission.forget_stranger(self)

    def count_for_client(self, headers: Headers) -> None:
        """Count a stranger behind a trusted proxy for the client that the proxy names in the request `headers`."""
        if not self.recognized.is_set() and self.through_proxy:
            self._admission.move(self, group_of(self._admission.proxies.client(self.peer, headers)))

    def evict(self) -> None:
        """Close the connection immediately."""
        self.abort()
        self.scope.cancel()


class Admission:
    """Places of one port. Not thread-safe; only `enter` blocks."""

    def __init__(
        self, places: int, per_address: int, keyed: Callable[[], bool], proxies: Proxies, statistics: Statistics
    ) -> None:
        self.places = places
        self.per_address = per_address
        self.keyed = keyed  # whether calls currently need a token
        self.proxies = proxies
        self._statistics = statistics
        self._open: Counter[str] = Counter()  # all connections, by address group
        self._strangers: dict[str, dict[ConnectionPlace, None]] = {}  # in order of arrival
        self.open = 0  # connections
        self.strangers = 0  # connections that are not known
        self._last_logged = -_LOG_INTERVAL
        self._unlogged = 0

    async def enter(self, peer: Peer) -> ConnectionPlace | None:
        """Return a place for a connection from `peer`; None if it is refused and must be closed.

        May evict another connection and wait for its end.
        """
        ticket = ConnectionPlace(self, peer)
        if not self.keyed():
            if self._open[ticket.group] >= self.per_address or self.open >= self.places:
                self._refused(ticket.group)
                return None
            self._add(ticket)
            return ticket
        self._add(ticket)
        victim = self._over(ticket)
        if victim is ticket:
            self.leave(ticket)
            self._refused(ticket.group)
            return None
        if victim is not None:
            self._evict(victim)
            with trio.move_on_after(_EVICTION):
                await victim.gone.wait()
        return ticket

    def leave(self, ticket: ConnectionPlace) -> None:
        """Release the place of a connection whose socket is closed."""
        self._remove(ticket)
        ticket.gone.set()

    def forget_stranger(self, ticket: ConnectionPlace) -> None:
        """Remove a connection from the strangers, if it is one."""
        group = self._strangers.get(ticket.group)
        if group is not None and ticket in group:
            del group[ticket]
            self.strangers -= 1
            if not group:
                del self._strangers[ticket.group]

    def move(self, ticket: ConnectionPlace, group: str) -> None:
        """Count a stranger for another address group; evict the oldest stranger there if its share is exceeded."""
        if group == ticket.group or ticket not in self._strangers.get(ticket.group, ()):
            return
        self._remove(ticket)
        ticket.group = group
        self._add(ticket)
        if self.keyed() and len(self._strangers[group]) > self._share:
            self._evict(next(iter(self._strangers[group])))

    @property
    def _share(self) -> int:
        return min(self.per_address, max(1, self.places // 4))

    def _add(self, ticket: ConnectionPlace) -> None:
        self._open[ticket.group] += 1
        self.open += 1
        self._strangers.setdefault(ticket.group, {})[ticket] = None
        self.strangers += 1

    def _remove(self, ticket: ConnectionPlace) -> None:
        self.forget_stranger(ticket)
        self.open -= 1
        self._open[ticket.group] -= 1
        if not self._open[ticket.group]:
            del self._open[ticket.group]

    def _over(self, ticket: ConnectionPlace) -> ConnectionPlace | None:
        """Return the stranger to evict for `ticket`, possibly `ticket` itself; None if there is room."""
        own = self._strangers[ticket.group]
        if len(own) > self._share and not ticket.through_proxy:
            return next(iter(own))
        if self.open > self.places or self.strangers > self.places // 2:
            largest = max(self._strangers, key=lambda group: len(self._strangers[group]))
            return next(iter(self._strangers[largest]))
        return None

    def _evict(self, victim: ConnectionPlace) -> None:
        self.forget_stranger(victim)
        self._refused(victim.group)
        victim.evict()

    def _refused(self, group: str) -> None:
        self._statistics.refused("connections")
        self._unlogged += 1
        now = trio.current_time()
        if now - self._last_logged >= _LOG_INTERVAL:
            text = "too many connections without a key: closed %d of them, the last one from %s; %d are open"
            _log.warning(text, self._unlogged, group, self.open)
            self._last_logged, self._unlogged = now, 0
