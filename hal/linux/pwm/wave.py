"""The schedule of a square wave. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

TOLERANCE: Final = 0.0002  # seconds; a rising edge with a longer delay shifts the wave to keep the pulse length


@dataclass(frozen=True, slots=True)
class Wave:
    """A wave whose current period began at `start`. Times are in seconds, `frequency` in Hz, duty is 0 to 1."""

    duty: float
    frequency: float
    start: float = 0.0

    @property
    def period(self) -> float:
        """Seconds from one rising edge to the next."""
        return 1 / self.frequency

    @property
    def constant(self) -> bool:
        """Whether the level never changes."""
        return not 0 < self.duty < 1

    def at(self, now: float) -> Wave:
        """Return the wave with the period that contains `now`.

        Small delays do not accumulate, because the period then begins on schedule; missed periods are skipped.
        """
        end = self.start + self.period
        if now < end:
            return self
        return replace(self, start=now if now - end > TOLERANCE else end)

    def level(self, now: float) -> tuple[bool, float]:
        """Return the level at `now`, which is in the current period, and the time of the next edge."""
        fall = self.start + self.duty * self.period
        return (True, fall) if now < fall else (False, self.start + self.period)
