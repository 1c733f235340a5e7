"""Processor time that each organization takes in shared threads. Pure: the caller passes the time."""

from __future__ import annotations

from typing import Final

SHARE: Final = 0.25  # share of a processor for one organization's long calls while others are active
BURST: Final = 0.5  # seconds that an organization may take without a pause
LONG: Final = 0.005  # seconds; shorter calls do not count, because they hardly delay others
_REMEMBERED: Final = 1000  # organizations; those with an empty bucket need not be remembered


class Shares:
    """A leaky bucket for each organization: it fills by the seconds taken, and SHARE seconds leak per second."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[float, float]] = {}  # seconds in the bucket, at a time

    def note(self, organization: str, seconds: float, now: float) -> float:
        """Count a call that took `seconds` of processor time and ended at `now`; return the required pause.

        The pause is the time in seconds until the next call of the organization may begin, if it has to share.
        """
        if seconds < LONG:
            return 0.0
        taken = self._left(organization, now) + seconds
        self._taken[organization] = taken, now
        if len(self._taken) > _REMEMBERED:
            self._taken = {name: entry for name, entry in self._taken.items() if self._left(name, now)}
        return max(0.0, taken - BURST) / SHARE

    def _left(self, organization: str, now: float) -> float:
        taken, then = self._taken.get(organization, (0.0, now))
        return max(0.0, taken - (now - then) * SHARE)
