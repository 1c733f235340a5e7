"""A steady beat of the simulated computer: Trio's clock, so that it works in virtual time too."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from hal.ports.ticks import Ticks


class _Ticks:
    """Beats at fixed times from the start on, whatever the lateness of the reader."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._start = trio.current_time()
        self._beat = 0

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        await trio.sleep_until(self._start + (self._beat + 1) * self._period)
        # The clock may be a rounding error short of the beat that was waited for.
        beat = max(self._beat + 1, math.floor((trio.current_time() - self._start) / self._period))
        passed, self._beat = beat - self._beat, beat
        return passed


@asynccontextmanager
async def ticks(period: float) -> AsyncIterator[Ticks]:
    """Beats every `period` seconds; ValueError if that is not above 0."""
    if not 0 < period < math.inf:
        raise ValueError(f"a period of {period:g} s; give more than 0")
    await trio.lowlevel.checkpoint()
    yield _Ticks(period)
