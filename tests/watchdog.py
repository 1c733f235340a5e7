"""Measure how long the event loop was blocked while something ran, for benches.

    async with watched() as loop:
        ...
    print(loop.longest)

A task asks for its turn again and again: how much later it gets it than it might have is the time for which others
could not run. Other programs make it late, too, so tests count calls on the loop instead.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import trio
import trio.lowlevel

EVERY: Final = 0.002  # seconds between two looks


@dataclass(slots=True)
class Watch:
    """Seconds by which turns of the event loop came late, of all looks so far."""

    late: list[float] = field(default_factory=list)

    @property
    def longest(self) -> float:
        """The longest time for which the loop was blocked."""
        return max(self.late, default=0.0)

    def quantile(self, share: float) -> float:
        """The time that so many of the looks were not later than: 0.99 for p99."""
        ordered = sorted(self.late)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


@asynccontextmanager
async def watched() -> AsyncIterator[Watch]:
    """Watch the loop while the context is open. Needs the real clock."""
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
