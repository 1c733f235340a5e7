"""Decoding of incremental encoders with two tracks that are a quarter of a period apart."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

# (A, B) while turning forward, in the convention that A leads: 00, 10, 11, 01. Position within the cycle of four ticks.
_CYCLE: Final = {(False, False): 0, (True, False): 1, (True, True): 2, (False, True): 3}

# Difference of cycle positions -> ticks; for two positions the direction is unknown, because an edge was missed.
_TICKS: Final = {0: 0, 1: 1, 2: None, 3: -1}


WINDOW: Final = 32  # number of recent edges among which a late edge can be inserted


def ticks_between(before: tuple[bool, bool], after: tuple[bool, bool]) -> int | None:
    """Return the ticks (1, 0 or -1) between two states of (A, B); None if both tracks changed at once."""
    return _TICKS[(_CYCLE[after] - _CYCLE[before]) % 4]


class Quadrature:
    """Counts the edges of two tracks.

    The initial levels need not be known: the first edge of each track shows its level, and earlier edges of the other
    track are counted then. Edges of the two tracks may arrive slightly out of order; they are sorted by their times.
    `missed` counts edges that cannot be the next of their track, such as a second rising edge: the falling edge was
    lost. Each loss changes the count by 0 or by a whole cycle of 4 ticks.
    """

    def __init__(self) -> None:
        self._state = _State()
        self._recent: deque[tuple[float, int, bool, _State]] = deque(maxlen=WINDOW)  # edges with the state before each

    @property
    def ticks(self) -> int:
        """The forward ticks minus the backward ticks."""
        return self._state.ticks

    @property
    def missed(self) -> int:
        """The number of lost edges."""
        return self._state.missed

    def edge(self, track: int, high: bool, time: float) -> None:
        """Process an edge of track 0 (A) or 1 (B) to the level `high` at `time`, in any unit."""
        later: list[tuple[float, int, bool]] = []
        while self._recent and self._recent[-1][0] > time:
            then, which, level, self._state = self._recent.pop()
            later.append((then, which, level))
        for then, which, level in ((time, track, high), *reversed(later)):
            self._recent.append((then, which, level, self._state))
            self._state = self._state.after(which, level)


@dataclass(frozen=True, slots=True)
class _State:
    """The state after some edges: count, losses, and the levels that are known."""

    ticks: int = 0
    missed: int = 0
    levels: tuple[bool | None, bool | None] = (None, None)
    begin: bool = False  # level of the first known track before its first edge

    def after(self, track: int, high: bool) -> _State:
        level, other = self.levels[track], self.levels[1 - track]
        if level is high:
            return replace(self, missed=self.missed + 1)
        levels = (high, other) if track == 0 else (other, high)
        if other is None:
            return replace(self, levels=levels, begin=not high if level is None else self.begin)
        ticks = _single(track, not high, high, other)
        if level is None:
            ticks += _single(1 - track, self.begin, other, not high)
        return replace(self, levels=levels, ticks=self.ticks + ticks)


def _single(track: int, before: bool, after: bool, other: bool) -> int:
    """Return the ticks of a change of one track from `before` to `after` while the other track stays the same."""
    if track == 0:
        return ticks_between((before, other), (after, other)) or 0
    return ticks_between((other, before), (other, after)) or 0
