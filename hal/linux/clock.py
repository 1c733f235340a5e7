"""Conversion between the kernel's monotonic clock and Trio's, which differ by an offset."""

from __future__ import annotations

import time
from typing import Final

import trio

READINGS: Final = 5


def trio_offset() -> float:
    """Return the seconds to add to a time of CLOCK_MONOTONIC to convert it to Trio's clock.

    Trio's real clock is CLOCK_MONOTONIC with an offset that is constant during a run. It is measured by reading both
    clocks several times, and the fastest measurement is used, since the thread may be preempted between two readings.
    Meaningless with a virtual clock.
    """
    return min(_reading() for _ in range(READINGS))[1]


def _reading() -> tuple[float, float]:
    """Measure the offset; return the duration of the measurement and the offset."""
    before, now, after = time.monotonic(), trio.current_time(), time.monotonic()
    return after - before, now - (before + after) / 2
