"""Token bucket. Pure: time is an argument."""

from __future__ import annotations


class Bucket:
    """Token bucket that allows `burst` events at once and `rate` events per second in the long run."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, burst: int, rate: float) -> None:
        self._burst = burst
        self._rate = rate
        self._tokens = float(burst)
        self._at: float | None = None

    def take(self, now: float) -> bool:
        """Count one event at `now` (seconds, monotonic). False if the event exceeds the rate."""
        if self._at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
