"""Decoding of incremental encoders: two tracks, a quarter of a period apart."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

# (A, B) while turning forward, in the convention that A leads: 00, 10, 11, 01. Position within the cycle of four ticks.
_CYCLE: Final = {(False, False): 0, (True, False): 1, (True, True): 2, (False, True): 3}

# Cycle positions travelled -> ticks; two at once have no direction: an edge was missed.
_TICKS: Final = {0: 0, 1: 1, 2: None, 3: -1}


WINDOW: Final = 32  # edges within which a late one finds its place


def ticks_between(before: tuple[bool, bool], after: tuple[bool, bool]) -> int | None:
    """Ticks (1, 0 or -1) between two states of (A, B); None if both tracks changed at once."""
    return _TICKS[(_CYCLE[after] - _CYCLE[before]) % 4]


class Quadrature:
    """Counts the edges of two tracks.

    The levels at the beginning need not be known: the first edge of each track tells them, and what the other track did
    before is counted then. Edges of the two tracks may be told out of order by a few: their times put them right.
    `missed` counts edges that cannot have been the next of their track, such as a second rise: the one between was
    lost. Each loss puts the count wrong by 0 or by a whole cycle of 4 ticks, never by less.
    """

    def __init__(self) -> None:
        self._state = _State()
        self._recent: deque[tuple[float, int, bool, _State]] = deque(maxlen=WINDOW)  # edges, and what was before each

    @property
    def ticks(self) -> int:
        """Forward minus backward."""
        return self._state.ticks

    @property
    def missed(self) -> int:
        """Edges that were lost."""
        return self._state.missed

    def edge(self, track: int, high: bool, time: float) -> None:
        """Track 0 (A) or 1 (B) has gone to `high` at `time`, in any unit."""
        later: list[tuple[float, int, bool]] = []
        while self._recent and self._recent[-1][0] > time:
            then, which, level, self._state = self._recent.pop()
            later.append((then, which, level))
        for then, which, level in ((time, track, high), *reversed(later)):
            self._recent.append((then, which, level, self._state))
            self._state = self._state.after(which, level)


@dataclass(frozen=True, slots=True)
class _State:
    """What is known after some edges: count, losses, and the levels as far as they were told."""

    ticks: int = 0
    missed: int = 0
    levels: tuple[bool | None, bool | None] = (None, None)
    begin: bool = False  # level of the first known track before its first edge

    def after(self, track: int, high: bool) -> _State:
        known, other = self.levels[track], self.levels[1 - track]
        if known is high:
            return replace(self, missed=self.missed + 1)
        levels = (high, other) if track == 0 else (other, high)
        if other is None:
            return replace(self, levels=levels, begin=not high if known is None else self.begin)
        ticks = _single(track, not high, high, other)
        if known is None:
            ticks += _single(1 - track, self.begin, other, not high)
        return replace(self, levels=levels, ticks=self.ticks + ticks)


def _single(track: int, before: bool, after: bool, other: bool) -> int:
    """Ticks of one track going from `before` to `after` while the other stays."""
    if track == 0:
        return ticks_between((before, other), (after, other)) or 0
    return ticks_between((other, before), (other, after)) or 0
