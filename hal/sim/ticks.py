"""Periodic ticks of the simulated computer, by Trio's clock, so that they also work in virtual time."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from hal.ports.ticks import Ticks


class _Ticks:
    """Ticks at fixed times from the start, independent of delays of the reader."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._start = trio.current_time()
        self._beat = 0

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        await trio.sleep_until(self._start + (self._beat + 1) * self._period)
        # Because of rounding, the clock may be slightly before the awaited tick.
        beat = max(self._beat + 1, math.floor((trio.current_time() - self._start) / self._period))
        passed, self._beat = beat - self._beat, beat
        return passed


@asynccontextmanager
async def ticks(period: float) -> AsyncIterator[Ticks]:
    """Yield ticks every `period` seconds; ValueError if it is not above 0."""
    if not 0 < period < math.inf:
        raise ValueError(f"a period of {period:g} s is not valid: use more than 0")
    await trio.lowlevel.checkpoint()
    yield _Ticks(period)
