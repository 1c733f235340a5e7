"""The kernel's monotonic clock and Trio's: the same clock with different zeros."""

from __future__ import annotations

import time
from typing import Final

import trio

READINGS: Final = 5


def trio_offset() -> float:
    """What to add to a time of CLOCK_MONOTONIC, in seconds, to have it on the run's own clock.

    Trio's real clock is CLOCK_MONOTONIC too, moved by an amount that is constant for the run, so the difference of two
    readings is that amount and stays right. Of several pairs of readings the quickest counts: this thread may lose the
    processor between two of them. Without meaning under a virtual clock.
    """
    return min(_reading() for _ in range(READINGS))[1]


def _reading() -> tuple[float, float]:
    """How long it took, and the offset."""
    before, now, after = time.monotonic(), trio.current_time(), time.monotonic()
    return after - before, now - (before + after) / 2
