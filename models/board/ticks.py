"""A stream of ticks of several pins in chronological order."""

from __future__ import annotations

import heapq
from typing import Final

import trio

from engine import Tick

BUFFER: Final = 4096  # ticks buffered for a slow reader


class TickQueue:
    """A queue of ticks ordered by time, for one reader.

    Pins are read one after the other, so ticks of the same moment arrive in any order. Ticks that arrive before the
    reader's task runs are sorted by their system timestamp.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._heap: list[tuple[int, int, Tick]] = []
        self._serial = 0
        self._filled = trio.Event()

    def put(self, pin_name: str, high: bool, time: float) -> None:
        """Add a tick; drop the earliest one if the queue is full."""
        tick = Tick(pin_name, round(time * 1e9), high)
        self._serial += 1
        heapq.heappush(self._heap, (tick.time, self._serial, tick))
        if len(self._heap) > BUFFER:
            heapq.heappop(self._heap)
            self.dropped += 1
        self._filled.set()

    async def get(self) -> Tick:
        """Wait for the earliest tick and remove it."""
        await trio.lowlevel.checkpoint()
        while not self._heap:
            self._filled = trio.Event()
            await self._filled.wait()
        return heapq.heappop(self._heap)[2]
