"""A track of an encoder disc, as a signal that depends on the position of a shaft. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from hal.sim.mechanics.motion import Spin
from hal.sim.mechanics.shaft import Shaft

ROUNDING: Final = 1e-6  # ticks; tolerance for rounding errors of positions
HORIZON: Final = 1e9  # seconds after which no edge is searched: such a slow shaft counts as standing still
_TANGENTS: Final = 12  # maximum iterations; a motion is nearly linear between two ticks
_CLOSE: Final = 1e-14  # relative precision of the time of a crossing


def ticks_at(shaft: Shaft, ticks_per_rotation: float, t: float) -> int:
    """Return the whole ticks since the disc was mounted."""
    return math.floor(shaft.position(t) * ticks_per_rotation + ROUNDING)


@dataclass(frozen=True, slots=True)
class Phase:
    """Track A (parity 1) or B (parity 0) of a quadrature disc.

    Each tick is a change of one track: with n whole ticks, A is high for n mod 4 in (1, 2), B for n mod 4 in (2, 3). So
    on the way up, A changes when n becomes odd, B when it becomes even.
    """

    shaft: Shaft
    ticks_per_rotation: float
    parity: int

    def _level(self, ticks: int) -> bool:
        return ticks % 4 in ((1, 2) if self.parity else (2, 3))

    def level(self, t: float) -> bool:
        """Return whether the track is transparent at the shaft's position."""
        return self._level(ticks_at(self.shaft, self.ticks_per_rotation, t))

    def mean(self, t: float) -> float:
        """Return the level: a disc turns too slowly for averaging."""
        return float(self.level(t))

    def _boundary(self, ticks: int) -> int:
        """Return the number of changes of this track up to `ticks`."""
        return (ticks + 1) // 2 if self.parity else ticks // 2

    def _changes(self, start: int, end: int) -> tuple[int, int]:
        low, high = sorted((self._boundary(start), self._boundary(end)))
        count = high - low
        if not count:
            return 0, 0
        # Changes alternate, beginning with one from the initial level.
        first, second = (count + 1) // 2, count // 2
        return (second, first) if self._level(start) else (first, second)

    def _pieces(self, after: float, until: float) -> list[tuple[float, float, Spin]]:
        """Return the spans within (after, until] in which the shaft turns in one direction."""
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
        """Count the edges between reversals without enumerating them."""
        ticks = ticks_at(self.shaft, self.ticks_per_rotation, after)
        rises = falls = 0
        ends = [self._ticks(spin, end) for _, end, spin in self._pieces(after, until)]
        # The brake stops the shaft at the end of coasting, so the final position is added.
        for end in (*ends, ticks_at(self.shaft, self.ticks_per_rotation, until)):
            up, down = self._changes(ticks, end)
            rises, falls, ticks = rises + up, falls + down, end
        return rises, falls

    def next_edge(self, after: float) -> tuple[float, bool] | None:
        """Find the next edge in the span of the motion in which the track changes."""
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
        """Return the first time in (low, high] at which the track has left `boundary`; at `high` it has.

        The shaft turns in one direction. The span is reduced by tangents, then by bisection to adjacent floats.
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
        """Return a time by which an unlimited motion has passed a change of the track, if it ever does."""
        end = max(start, spin.settled())
        if spin.target != 0:
            end += 8 / (abs(spin.target) * self.ticks_per_rotation)
        return min(end, start + HORIZON)
