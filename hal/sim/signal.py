"""Signals as pure functions of time: what a line carries between two changes of who drives it and how."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol


class Signal(Protocol):
    """A level over time."""

    def level(self, t: float) -> bool:
        """The level at `t`."""

    def mean(self, t: float) -> float:
        """The level at `t` as a slow circuit sees it: 0 to 1."""

    def edges(self, after: float, until: float) -> tuple[int, int]:
        """How many times it rises and falls within (after, until]."""

    def next_edge(self, after: float) -> tuple[float, bool] | None:
        """The first edge after `after`: when, and to which level; None if there is none."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A level that stays; between 0 and 1 it is a voltage, high from the half on."""

    value: float

    def level(self, t: float) -> bool:
        """The level."""
        return self.value >= 0.5

    def mean(self, t: float) -> float:
        """The value."""
        return self.value

    def edges(self, after: float, until: float) -> tuple[int, int]:
        """None."""
        return 0, 0

    def next_edge(self, after: float) -> tuple[float, bool] | None:
        """None."""
        return None


LOW = Constant(0.0)
HIGH = Constant(1.0)


@dataclass(frozen=True, slots=True)
class Square:
    """A wave that rises at `since` and every 1/frequency s, and is high for `duty` of each period (0 < duty < 1)."""

    since: float
    frequency: float
    duty: float

    def _phase(self, t: float) -> float:
        return (t - self.since) * self.frequency

    def level(self, t: float) -> bool:
        """High in the first part of each period."""
        return self._phase(t) % 1.0 < self.duty

    def mean(self, t: float) -> float:
        """The duty."""
        return self.duty

    def edges(self, after: float, until: float) -> tuple[int, int]:
        """Counted, not enumerated: any span costs the same."""
        first, last = self._phase(after), self._phase(until)
        return (
            math.floor(last) - math.floor(first),
            math.floor(last - self.duty) - math.floor(first - self.duty),
        )

    def next_edge(self, after: float) -> tuple[float, bool] | None:
        """The next whole period, or the end of this one's high part."""
        phase = self._phase(after)
        rise = math.floor(phase) + 1
        fall = math.floor(phase - self.duty) + 1 + self.duty
        high = rise < fall
        when = self.since + (rise if high else fall) / self.frequency
        # Rounding may put the edge at or before the time asked about; the smallest step ahead keeps readers moving.
        return max(when, math.nextafter(after, math.inf)), high
