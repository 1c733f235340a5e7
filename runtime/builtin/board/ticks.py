"""Ticks of several pins as one stream, in the order in which they happened."""

from __future__ import annotations

import heapq
from typing import Final

import trio

from runtime.components.board import Tick

BUFFER: Final = 4096  # ticks kept for a slow reader


class TickQueue:
    """Ticks that came and were not taken yet, the earliest first. One reader.

    Pins are read one after the other, so ticks of one moment come in any order; all that came before the reader's task
    runs are put in order by the time the system gave them.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._heap: list[tuple[int, int, Tick]] = []
        self._serial = 0
        self._filled = trio.Event()

    def put(self, pin_name: str, high: bool, time: float) -> None:
        """Add a tick; the earliest one goes if there are too many."""
        tick = Tick(pin_name, round(time * 1e9), high)
        self._serial += 1
        heapq.heappush(self._heap, (tick.time, self._serial, tick))
        if len(self._heap) > BUFFER:
            heapq.heappop(self._heap)
            self.dropped += 1
        self._filled.set()

    async def get(self) -> Tick:
        """Wait for and take the earliest tick."""
        await trio.lowlevel.checkpoint()
        while not self._heap:
            self._filled = trio.Event()
            await self._filled.wait()
        return heapq.heappop(self._heap)[2]
