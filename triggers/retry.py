"""How a delivery ended, whether it is tried again, and when. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

SCHEDULE: Final = (5.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 36000.0)
"""Seconds from one attempt to the next: eight attempts within 28 hours, as Svix has them."""

MAX_WAIT: Final = 86400.0  # seconds that a receiver can put us off
_JITTER: Final = 0.2  # of the wait, added: receivers that come back are not met by all at once
_RETRIED: Final = frozenset({408, 409, 425, 429})  # and 5xx; all other answers are final


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended."""

    status: int = 0  # of HTTP, or the reply code of SMTP; 0 if there was no answer
    error: str = ""  # why it did not arrive, in words; empty if it did
    retry_after: float | None = None  # seconds that the receiver asked for
    final: bool = False  # it would end so again: refused address, wrong settings
    disable: bool = False  # the receiver wants no more, ever
    internal: str = ""  # details for the administrator's log only, such as addresses of an internal network

    @property
    def delivered(self) -> bool:
        """True if the receiver has it."""
        return not self.error


def of_status(status: int, retry_after: float | None = None, said: str = "") -> Outcome:
    """What an answer of HTTP means. Redirects are not followed, so they are failures."""
    if 200 <= status < 300:
        return Outcome(status)
    retried = status in _RETRIED or status >= 500
    reason = _WORDS.get(status) or ("redirects are not followed" if 300 <= status < 400 else "")
    text = f"answered {status}" + (f", {reason}" if reason else "") + (f": {said}" if said else "")
    return Outcome(status, text, retry_after if retried else None, final=not retried, disable=status == 410)


_WORDS: Final = {
    400: "bad request",
    401: "the receiver asks for other credentials",
    403: "forbidden",
    404: "nothing is at that URL",
    408: "it waited too long",
    410: "the receiver is gone for good",
    413: "too large",
    429: "too many requests",
    500: "the receiver failed",
    502: "bad gateway",
    503: "unavailable",
    504: "gateway timed out",
}


def next_try(outcome: Outcome, attempts: int, seed: str | int) -> float | None:
    """Seconds until the next attempt after `attempts` of them (at least one); None if there is none.

    The same seed, such as the id of the delivery, gives the same wait.
    """
    if outcome.delivered or outcome.final or attempts > len(SCHEDULE):
        return None
    wait = SCHEDULE[attempts - 1] * (1 + _JITTER * _fraction(seed, attempts))
    return max(wait, min(outcome.retry_after or 0.0, MAX_WAIT))


def _fraction(seed: str | int, attempts: int) -> float:
    digest = hashlib.sha256(f"{seed}:{attempts}".encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48
