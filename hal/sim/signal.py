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

    def _time(self, k: int) -> float:
        """When the k-th edge is: even ones rise, odd ones fall."""
        return self.since + (k // 2 + (self.duty if k % 2 else 0.0)) / self.frequency

    def _index(self, t: float) -> int:
        """The last edge at or before `t`; all else is derived from it, so rounding loses and doubles no edge."""
        phase = (t - self.since) * self.frequency
        k = 2 * math.floor(phase) + (phase % 1.0 >= self.duty)
        while self._time(k) > t:
            k -= 1
        while self._time(k + 1) <= t:
            k += 1
        return k

    def level(self, t: float) -> bool:
        """High in the first part of each period."""
        return self._index(t) % 2 == 0

    def mean(self, t: float) -> float:
        """The duty."""
        return self.duty

    def edges(self, after: float, until: float) -> tuple[int, int]:
        """Counted, not enumerated: any span costs the same."""
        first, last = self._index(after), self._index(until)
        rises = last // 2 - first // 2
        return rises, last - first - rises

    def next_edge(self, after: float) -> tuple[float, bool] | None:
        """The one after the last."""
        k = self._index(after) + 1
        return self._time(k), k % 2 == 0
