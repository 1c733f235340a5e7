"""Decoding of incremental encoders: two tracks, a quarter of a period apart."""

from __future__ import annotations

from typing import Final

# (A, B) while turning forward, in the convention that A leads: 00, 10, 11, 01. Position within the cycle of four ticks.
_CYCLE: Final = {(False, False): 0, (True, False): 1, (True, True): 2, (False, True): 3}

# Cycle positions travelled -> ticks; two at once have no direction: an edge was missed.
_TICKS: Final = {0: 0, 1: 1, 2: None, 3: -1}


def ticks_between(before: tuple[bool, bool], after: tuple[bool, bool]) -> int | None:
    """Ticks (1, 0 or -1) between two states of (A, B); None if both tracks changed at once."""
    return _TICKS[(_CYCLE[after] - _CYCLE[before]) % 4]


class Quadrature:
    """Counts the edges of two tracks in the order in which they happened.

    The levels at the beginning need not be known: the first edge of each track tells them, and what the other track did
    before is counted then. `missed` counts edges that cannot have been the next of their track, such as a second rise:
    the one between was lost. Each loss puts the count wrong by 0 or by a whole cycle of 4 ticks, never by less.
    """

    def __init__(self) -> None:
        self.ticks = 0
        self.missed = 0
        self._levels: list[bool | None] = [None, None]
        self._begin = False  # level of the first known track before its first edge

    def edge(self, track: int, high: bool) -> int:
        """Track 0 (A) or 1 (B) has gone to `high`; returns the ticks that this tells."""
        known, other = self._levels[track], self._levels[1 - track]
        if known is high:
            self.missed += 1
            return 0
        self._levels[track] = high
        if other is None:
            if known is None:
                self._begin = not high
            return 0
        ticks = _single(track, not high, high, other)
        if known is None:
            ticks += _single(1 - track, self._begin, other, not high)
        self.ticks += ticks
        return ticks


def _single(track: int, before: bool, after: bool, other: bool) -> int:
    """Ticks of one track going from `before` to `after` while the other stays."""
    if track == 0:
        return ticks_between((before, other), (after, other)) or 0
    return ticks_between((other, before), (other, after)) or 0
