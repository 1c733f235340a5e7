"""Measure how long the event loop was blocked while something ran, for benches.

    async with watched() as loop:
        ...
    print(loop.longest)

A task sleeps again and again: the delay of its turn is the time for which other tasks could not run. Other programs on
the computer delay it as well, so tests count calls on the loop instead.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import trio
import trio.lowlevel

EVERY: Final = 0.002  # seconds between two measurements


@dataclass(slots=True)
class Watch:
    """The delays of the watching task in seconds, one for each turn so far."""

    late: list[float] = field(default_factory=list)

    @property
    def longest(self) -> float:
        """Return the longest time for which the loop was blocked."""
        return max(self.late, default=0.0)

    def quantile(self, share: float) -> float:
        """Return the delay that this share of the turns did not exceed: 0.99 for p99."""
        ordered = sorted(self.late)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


@asynccontextmanager
async def watched() -> AsyncIterator[Watch]:
    """Measure the loop while the block runs. Needs the real clock."""
    watch = Watch()

    async def look() -> None:
        while True:
            begin = time.perf_counter()
            await trio.sleep(EVERY)
            watch.late.append(max(0.0, time.perf_counter() - begin - EVERY))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        await trio.lowlevel.checkpoint()
        try:
            yield watch
        finally:
            nursery.cancel_scope.cancel()
