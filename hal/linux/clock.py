"""The kernel's monotonic clock and Trio's: the same clock with different zeros."""

from __future__ import annotations

import time

import trio


def trio_offset() -> float:
    """What to add to a time of CLOCK_MONOTONIC, in seconds, to have it on the run's own clock.

    Trio's real clock is CLOCK_MONOTONIC too, moved by an amount that is constant for the run, so the difference of two
    readings, one after the other, is that amount and stays right. Without meaning under a virtual clock.
    """
    return trio.current_time() - time.monotonic()
