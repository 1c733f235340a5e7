"""Buckets of time for plots: their length, and where they start. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

_SECOND: Final = 1_000_000  # in microseconds, like all times here
_DAY: Final = 86_400 * _SECOND
STEPS: Final = (
    *(digit * 10**power for power, digit in product(range(6), (1, 2, 5))),
    *(seconds * _SECOND for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * 60 * _SECOND for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * 3600 * _SECOND for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 7, 14, 28)),
)
"""Lengths of buckets; longer ones are multiples of the last."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Buckets of equal length, without gaps, as stored times. The first starts at a multiple of the length."""

    first: int
    step: int
    count: int

    def starts(self) -> list[int]:
        """Return the start of each bucket."""
        return [self.first + number * self.step for number in range(self.count)]


def buckets_of(start: int, end: int, points: int) -> Buckets:
    """Return at most `points` buckets, at least 2, that cover the times from `start` to before `end`.

    Their length is a round one, and they do not move when the range does, so that a plot that follows the time is calm.
    """
    enough = -(-(end - start) // (points - 1))
    step = next((step for step in STEPS if step >= enough), -(-enough // STEPS[-1]) * STEPS[-1])
    first = start // step
    return Buckets(first * step, step, max(1, (end - 1) // step - first + 1))
