"""A square wave in time: which level now, and until when. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

TOLERANCE: Final = 0.0002  # seconds; a rise that is later than this moves the wave, so that its pulse is not cut short


@dataclass(frozen=True, slots=True)
class Wave:
    """A wave whose current period began at `start`; times in seconds of one clock, `frequency` in Hz, duty 0 to 1."""

    duty: float
    frequency: float
    start: float = 0.0

    @property
    def period(self) -> float:
        """Seconds from one rise to the next."""
        return 1 / self.frequency

    @property
    def constant(self) -> bool:
        """Whether it never changes."""
        return not 0 < self.duty < 1

    def at(self, now: float) -> Wave:
        """The same wave in the period that `now` is in.

        A period that begins in time begins on schedule, so that lateness does not add up; periods that were missed are
        not made up for.
        """
        end = self.start + self.period
        if now < end:
            return self
        return replace(self, start=now if now - end > TOLERANCE else end)

    def level(self, now: float) -> tuple[bool, float]:
        """The level at `now`, in the current period, and when it ends."""
        fall = self.start + self.duty * self.period
        return (True, fall) if now < fall else (False, self.start + self.period)
