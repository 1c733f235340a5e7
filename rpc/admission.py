"""Which connections a port holds: a share for each address, a reserve for clients that have shown a key.

A connection begins as a stranger. It is known once a call has shown a valid token, or, on a server without keys, once
it has made a call. On a server with keys strangers have at most half of all places and each address a share of these;
a newcomer takes the place of the stranger that has waited longest, so that whoever has a key always gets in. On a
server without keys everybody is equal: what is beyond an address's share is refused.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

import trio

from rpc.addresses import group_of
from rpc.carrier import Headers, Peer
from rpc.forwarded import Proxies
from rpc.statistics import Statistics

_log = logging.getLogger("rpc.port")
_SAY_EVERY: Final = 60.0  # seconds between two log lines about connections that were refused or ended
_EVICTION: Final = 2.0  # seconds that a newcomer waits for its place; an evicted connection ends at once


class Ticket:
    """A place for one connection; give it back with `Admission.leave`."""

    __slots__ = ("_admission", "abort", "gone", "group", "known", "peer", "scope")

    def __init__(self, admission: Admission, peer: Peer) -> None:
        self._admission = admission
        self.peer = peer
        self.group = group_of(peer)
        self.scope = trio.CancelScope()  # of the connection's task
        self.abort: Callable[[], None] = lambda: None  # ends the connection without the politeness of its protocol
        self.known = trio.Event()
        self.gone = trio.Event()

    @property
    def through_proxy(self) -> bool:
        """Whether a trusted proxy is at the other end."""
        return self._admission.proxies.trusts(self.peer)

    def recognize(self, *, key: bool) -> None:
        """A request was let in; `key` says whether it showed a valid token."""
        if not self.known.is_set() and (key or not self._admission.keyed()):
            self.known.set()
            self._admission.forget_stranger(self)

    def stands_for(self, headers: Headers) -> None:
        """A request has come. Behind a trusted proxy the connection counts for the client that the proxy names."""
        if not self.known.is_set() and self.through_proxy:
            self._admission.move(self, group_of(self._admission.proxies.client(self.peer, headers)))

    def evict(self) -> None:
        """End the connection now."""
        self.abort()
        self.scope.cancel()


class Admission:
    """The places of one port. Not thread-safe; nothing here blocks but `enter`."""

    def __init__(
        self, places: int, per_address: int, keyed: Callable[[], bool], proxies: Proxies, statistics: Statistics
    ) -> None:
        self.places = places
        self.per_address = per_address
        self.keyed = keyed  # whether calls need a token now
        self.proxies = proxies
        self._statistics = statistics
        self._open: Counter[str] = Counter()  # all connections, by group of addresses
        self._strangers: dict[str, dict[Ticket, None]] = {}  # in order of arrival
        self.open = 0  # connections
        self.strangers = 0  # those of them that are not known
        self._said = -_SAY_EVERY
        self._unsaid = 0

    async def enter(self, peer: Peer) -> Ticket | None:
        """A place for a connection from `peer`, None if there is none: close it. May end another connection first."""
        ticket = Ticket(self, peer)
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

    def leave(self, ticket: Ticket) -> None:
        """The connection has ended and its descriptor is closed."""
        self._remove(ticket)
        ticket.gone.set()

    def forget_stranger(self, ticket: Ticket) -> None:
        """It is none any more."""
        group = self._strangers.get(ticket.group)
        if group is not None and ticket in group:
            del group[ticket]
            self.strangers -= 1
            if not group:
                del self._strangers[ticket.group]

    def move(self, ticket: Ticket, group: str) -> None:
        """A stranger counts for another group from now on; its share is that of this group."""
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

    def _add(self, ticket: Ticket) -> None:
        self._open[ticket.group] += 1
        self.open += 1
        self._strangers.setdefault(ticket.group, {})[ticket] = None
        self.strangers += 1

    def _remove(self, ticket: Ticket) -> None:
        self.forget_stranger(ticket)
        self.open -= 1
        self._open[ticket.group] -= 1
        if not self._open[ticket.group]:
            del self._open[ticket.group]

    def _over(self, ticket: Ticket) -> Ticket | None:
        """The stranger that has to go for `ticket`: itself if there is nobody else; None if there is room."""
        own = self._strangers[ticket.group]
        if len(own) > self._share and not ticket.through_proxy:
            return next(iter(own))
        if self.open > self.places or self.strangers > self.places // 2:
            largest = max(self._strangers, key=lambda group: len(self._strangers[group]))
            return next(iter(self._strangers[largest]))
        return None

    def _evict(self, victim: Ticket) -> None:
        self.forget_stranger(victim)
        self._refused(victim.group)
        victim.evict()

    def _refused(self, group: str) -> None:
        self._statistics.refused("connections")
        self._unsaid += 1
        now = trio.current_time()
        if now - self._said >= _SAY_EVERY:
            text = "too many connections that show no key: %d were closed to make room, the last from %s; %d are open"
            _log.warning(text, self._unsaid, group, self.open)
            self._said, self._unsaid = now, 0
