"""Throttling of failed login attempts. Pure: time is an argument."""

from __future__ import annotations

from typing import Final

FAILURES: Final = 20  # per period, for one entity from one address; more than typing errors, fewer than guesses
ADDRESS_FAILURES: Final = 10 * FAILURES  # for all entities from one address; a site behind NAT has many devices
PERIOD: Final = 60.0  # seconds
MAX_PEERS: Final = 4096  # counted subjects; the one with the oldest period is dropped first


class Attempts:
    """Counter that allows `failures` in `period` seconds for each subject: an address, or an address and an entity."""

    def __init__(self, *, failures: int = FAILURES, period: float = PERIOD, max_peers: int = MAX_PEERS) -> None:
        self._failures = failures
        self._period = period
        self._max_peers = max_peers
        self._counts: dict[str, tuple[float, int]] = {}  # peer -> (start of its period, failures), oldest period first

    def wait(self, peer: str, now: float) -> float:
        """Return the seconds until `peer` may try again, 0 if it may now."""
        begin, count = self._counts.get(peer, (now, 0))
        return max(0.0, begin + self._period - now) if count >= self._failures else 0.0

    def failed(self, peer: str, now: float) -> None:
        """Count one failure."""
        begin, count = self._counts.get(peer, (now, 0))
        if now - begin >= self._period:
            begin, count = now, 0
        if count == 0:
            self._counts.pop(peer, None)
        self._counts[peer] = (begin, count + 1)
        while len(self._counts) > self._max_peers:
            del self._counts[next(iter(self._counts))]
