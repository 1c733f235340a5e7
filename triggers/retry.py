"""Outcome of delivery attempts and schedule of retries. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

SCHEDULE: Final = (5.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 36000.0)
"""Seconds between attempts: eight attempts within 28 hours, as used by Svix."""

MAX_WAIT: Final = 86400.0  # seconds; longest delay that a receiver can request
_JITTER: Final = 0.2  # fraction of the wait that may be added, to spread retries
_RETRIED: Final = frozenset({408, 409, 425, 429})  # and 5xx; all other failures are final


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """Outcome of one attempt."""

    status: int = 0  # HTTP status or SMTP reply code; 0 without a response
    error: str = ""  # why delivery failed, for users; empty on success
    retry_after: float | None = None  # seconds requested by the receiver
    final: bool = False  # a retry would fail too, for example for a refused address or wrong settings
    disable: bool = False  # the receiver no longer accepts notifications
    internal: str = ""  # details for the administrator's log only, such as addresses of an internal network

    @property
    def delivered(self) -> bool:
        """True if the receiver has accepted the notification."""
        return not self.error


def of_status(status: int, retry_after: float | None = None, excerpt: str = "") -> AttemptOutcome:
    """Return the outcome for an HTTP status; `excerpt` is an excerpt of the response. Redirects are failures."""
    if 200 <= status < 300:
        return AttemptOutcome(status)
    retried = status in _RETRIED or status >= 500
    reason = _WORDS.get(status) or ("redirects are not followed" if 300 <= status < 400 else "")
    text = f"answered {status}" + (f", {reason}" if reason else "") + (f": {excerpt}" if excerpt else "")
    return AttemptOutcome(status, text, retry_after if retried else None, final=not retried, disable=status == 410)


_WORDS: Final = {
    400: "bad request",
    401: "the receiver rejects the credentials",
    403: "forbidden",
    404: "the URL does not exist",
    408: "the receiver timed out",
    410: "the receiver was removed permanently",
    413: "too large",
    429: "too many requests",
    500: "the receiver failed",
    502: "bad gateway",
    503: "unavailable",
    504: "gateway timed out",
}


def next_try(outcome: AttemptOutcome, attempts: int, seed: str | int) -> float | None:
    """Return the seconds until the next attempt, after `attempts` (at least one) attempts; None if there is none.

    The wait is deterministic for a `seed`, such as the id of the delivery.
    """
    if outcome.delivered or outcome.final or attempts > len(SCHEDULE):
        return None
    wait = SCHEDULE[attempts - 1] * (1 + _JITTER * _fraction(seed, attempts))
    return max(wait, min(outcome.retry_after or 0.0, MAX_WAIT))


def _fraction(seed: str | int, attempts: int) -> float:
    digest = hashlib.sha256(f"{seed}:{attempts}".encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48
