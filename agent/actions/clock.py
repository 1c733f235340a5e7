"""The clock of a driver: seconds since 1970 that never jump while an update is in progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import trio

ROUNDING: Final = 1e-3
"""Seconds; more than the precision of a time since 1970 in a float, which is 0.0000002 seconds."""


class Clock:
    """Reads the clock of the computer once, and adds the seconds of Trio's clock.

    `speed` lets time pass faster, for tests: 100 turns ten minutes into six seconds.
    """

    def __init__(self, wall: Callable[[], float] = time.time, speed: float = 1.0) -> None:
        self._wall, self.speed = wall, speed
        self._base = self._begin = 0.0
        self.read()

    def read(self) -> None:
        """Read the clock of the computer again. Call it only while no update is in progress."""
        self._base, self._begin = self._wall(), trio.current_time()

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self._base + (trio.current_time() - self._begin) * self.speed

    def wall(self) -> float:
        """Return what the clock of the computer shows, in seconds since 1970; it may have been set meanwhile."""
        return self._wall()

    def shown_at(self, moment: float) -> float:
        """Return what the clock of the computer would have shown at `moment`, as it is set now."""
        return self._wall() - (self.now() - moment)

    def trio_time(self, moment: float) -> float:
        """Return the time of Trio's clock at which `now` is `moment` or a little more, in seconds since 1970.

        Without the addition, `now` could be rounded to a time before `moment`, and waiting for it would end too early.
        """
        return self._begin + (moment - self._base) / self.speed + ROUNDING

    def trio_seconds(self, seconds: float) -> float:
        """Return how long to wait for `seconds` to pass."""
        return seconds / self.speed
