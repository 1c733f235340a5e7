"""One track of an encoder disc, as a signal: a function of the shaft's position, hence of time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from hal.sim.motion import Spin
from hal.sim.shaft import Shaft

ROUNDING: Final = 1e-6  # ticks: a position reached by arithmetic counts as reached
HORIZON: Final = 1e9  # seconds beyond which no edge is looked for: a shaft that slow stands still
_TANGENTS: Final = 12  # at most; a motion is nearly straight between two ticks
_CLOSE: Final = 1e-14  # of a time: what a crossing is guessed to


def ticks_at(shaft: Shaft, ticks_per_rotation: float, t: float) -> int:
    """Whole ticks from where the disc was put on."""
    return math.floor(shaft.position(t) * ticks_per_rotation + ROUNDING)


@dataclass(frozen=True, slots=True)
class Phase:
    """Track A (parity 1) or B (parity 0) of a quadrature disc.

    Each tick is one change of one track: with n whole ticks, A is high for n mod 4 in (1, 2), B for n mod 4 in (2, 3).
    So A changes where n becomes odd on the way up, B where it becomes even.
    """

    shaft: Shaft
    ticks_per_rotation: float
    parity: int

    def _level(self, ticks: int) -> bool:
        return ticks % 4 in ((1, 2) if self.parity else (2, 3))

    def level(self, t: float) -> bool:
        """Whether the track is transparent at the shaft's position."""
        return self._level(ticks_at(self.shaft, self.ticks_per_rotation, t))

    def mean(self, t: float) -> float:
        """The level: a disc turns too slowly to blur."""
        return float(self.level(t))

    def _boundary(self, ticks: int) -> int:
        """How many changes of this track lie at or below `ticks`."""
        return (ticks + 1) // 2 if self.parity else ticks // 2

    def _changes(self, start: int, end: int) -> tuple[int, int]:
        low, high = sorted((self._boundary(start), self._boundary(end)))
        count = high - low
        if not count:
            return 0, 0
        # Changes alternate; the first one leaves the level of the start.
        first, second = (count + 1) // 2, count // 2
        return (second, first) if self._level(start) else (first, second)

    def _pieces(self, after: float, until: float) -> list[tuple[float, float, Spin]]:
        """Spans within (after, until] in which the shaft turns one way."""
        pieces = []
        for start, end, spin in self.shaft.spins(after, until):
            turn = spin.turn()
            if turn is not None and start < turn < end:
                pieces += [(start, turn, spin), (turn, end, spin)]
            else:
                pieces.append((start, end, spin))
        return pieces

    def _ticks(self, spin: Spin, t: float) -> int:
        return math.floor(spin.at(t) * self.ticks_per_rotation + ROUNDING)

    def edges(self, after: float, until: float) -> tuple[int, int]:
        """Counted between turning points, not enumerated."""
        ticks = ticks_at(self.shaft, self.ticks_per_rotation, after)
        rises = falls = 0
        ends = [self._ticks(spin, end) for _, end, spin in self._pieces(after, until)]
        # The brake holds the shaft at the end of a coast: the last word is the position itself.
        for end in (*ends, ticks_at(self.shaft, self.ticks_per_rotation, until)):
            up, down = self._changes(ticks, end)
            rises, falls, ticks = rises + up, falls + down, end
        return rises, falls

    def next_edge(self, after: float) -> tuple[float, bool] | None:
        """Found in the piece of the motion in which the track changes."""
        ticks = ticks_at(self.shaft, self.ticks_per_rotation, after)
        for start, end, spin in self._pieces(after, math.inf):
            if self._boundary(self._ticks(spin, start)) != self._boundary(ticks):
                return max(start, math.nextafter(after, math.inf)), not self._level(ticks)
            if math.isinf(end):
                end = self._last_edge(spin, start)
            if self._boundary(self._ticks(spin, end)) == self._boundary(ticks):
                continue
            passed = self._passed(spin, self._boundary(ticks), start, end)
            return max(passed, math.nextafter(after, math.inf)), not self._level(ticks)
        return None

    def _passed(self, spin: Spin, boundary: int, low: float, high: float) -> float:
        """The first time in (low, high] at which the track has left `boundary`, by then it has; it turns one way.

        The span is narrowed down by tangents, then halved until no float is between.
        """
        forward = self._boundary(self._ticks(spin, high)) > boundary
        edge = (2 * (boundary + forward) - self.parity - ROUNDING) / self.ticks_per_rotation
        guess = low
        for _ in range(_TANGENTS):
            speed = spin.speed_at(guess)
            step = (edge - spin.at(guess)) / speed if speed else math.inf
            if low <= guess + step <= high:
                guess += step
                if abs(step) <= abs(guess) * _CLOSE:
                    break
            else:
                guess = (low + high) / 2
                low, high = self._narrowed(spin, boundary, low, guess, high)
        for t in (guess - abs(guess) * _CLOSE, guess + abs(guess) * _CLOSE):
            low, high = self._narrowed(spin, boundary, low, t, high)
        while low < (middle := (low + high) / 2) < high:
            low, high = self._narrowed(spin, boundary, low, middle, high)
        return high

    def _narrowed(self, spin: Spin, boundary: int, low: float, t: float, high: float) -> tuple[float, float]:
        if not low < t < high:
            return low, high
        return (t, high) if self._boundary(self._ticks(spin, t)) == boundary else (low, t)

    def _last_edge(self, spin: Spin, start: float) -> float:
        """A time by which an unending motion has passed a change of the track, if it ever does."""
        end = max(start, spin.settled())
        if spin.target != 0:
            end += 8 / (abs(spin.target) * self.ticks_per_rotation)
        return min(end, start + HORIZON)
