"""Signals of lines between two changes, as pure functions of time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol


class Signal(Protocol):
    """A level over time."""

    def level(self, t: float) -> bool:
        """Return the level at `t`."""

    def mean(self, t: float) -> float:
        """Return the mean level at `t`, 0 to 1, as for a slow circuit."""

    def edges(self, after: float, until: float) -> tuple[int, int]:
        """Return the numbers of rising and falling edges within (after, until]."""

    def next_edge(self, after: float) -> tuple[float, bool] | None:
        """Return the time and level of the first edge after `after`; None if there is none."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant level; values between 0 and 1 are voltages, high from 0.5."""

    value: float

    def level(self, t: float) -> bool:
        """Return the level."""
        return self.value >= 0.5

    def mean(self, t: float) -> float:
        """Return the value."""
        return self.value

    def edges(self, after: float, until: float) -> tuple[int, int]:
        """Return no edges."""
        return 0, 0

    def next_edge(self, after: float) -> tuple[float, bool] | None:
        """Return None."""
        return None


LOW = Constant(0.0)
HIGH = Constant(1.0)


@dataclass(frozen=True, slots=True)
class Square:
    """A square wave that rises at `since` and then periodically, with the given `duty` (0 < duty < 1)."""

    since: float
    frequency: float
    duty: float

    def _time(self, k: int) -> float:
        """Return the time of the k-th edge: even ones rise, odd ones fall."""
        return self.since + (k // 2 + (self.duty if k % 2 else 0.0)) / self.frequency

    def _index(self, t: float) -> int:
        """Return the last edge at or before `t`. All results derive from it, so rounding loses or doubles no edge."""
        phase = (t - self.since) * self.frequency
        k = 2 * math.floor(phase) + (phase % 1.0 >= self.duty)
        while self._time(k) > t:
            k -= 1
        while self._time(k + 1) <= t:
            k += 1
        return k

    def level(self, t: float) -> bool:
        """Return the level at `t`, which is high in the first part of each period."""
        return self._index(t) % 2 == 0

    def mean(self, t: float) -> float:
        """Return the duty."""
        return self.duty

    def edges(self, after: float, until: float) -> tuple[int, int]:
        """Count the edges without enumerating them."""
        first, last = self._index(after), self._index(until)
        rises = last // 2 - first // 2
        return rises, last - first - rises

    def next_edge(self, after: float) -> tuple[float, bool] | None:
        """Return the edge that follows the last one until `after`."""
        k = self._index(after) + 1
        return self._time(k), k % 2 == 0
