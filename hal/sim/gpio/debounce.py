"""Debouncing like in the kernel (gpiolib-cdev.c): a level is accepted after it has been stable for a period."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from types import TracebackType

import trio

from hal.ports.digital import Edge
from hal.sim.gpio.pins import EDGE_BUFFER, EdgeStream
from hal.sim.gpio.wiring import Pin, Wiring


class Filter:
    """Computes the debounced level of a line from its raw edges in order."""

    def __init__(self, level: bool, period: float) -> None:
        self.level = level
        self._period = period
        self._pending: Edge | None = None

    def feed(self, edge: Edge) -> Edge | None:
        """Process a raw edge; return the debounced edge before it, if any."""
        debounced = self.at(edge.time)
        self._pending = edge
        return debounced

    def at(self, t: float) -> Edge | None:
        """Return the debounced edge until `t`, if there is one that was not returned yet."""
        pending = self._pending
        if pending is None or t < pending.time + self._period:
            return None
        self._pending = None
        if pending.high == self.level:
            return None
        self.level = pending.high
        return Edge(pending.high, pending.time + self._period)

    def due(self) -> float:
        """Return when the pending level is accepted if it stays stable; infinity if none is pending."""
        return math.inf if self._pending is None else self._pending.time + self._period


class Debouncer:
    """The debounced level of a pin while the context is open."""

    def __init__(self, wiring: Wiring, pin: Pin, clock: Callable[[], float], period: float) -> None:
        self._wiring = wiring
        self._pin = pin
        self._clock = clock
        self._period = period

    def __enter__(self) -> Debouncer:
        self._stream = EdgeStream(self._wiring, self._pin, self._clock)
        self._filter = Filter(self._wiring.signal(self._pin).level(self._clock()), self._period)
        if self._period:
            self._pin.watchers.append(self._stream)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._period:
            self._pin.watchers.remove(self._stream)

    def read(self) -> bool:
        """Return the current level."""
        now = self._clock()
        if not self._period:
            return self._wiring.signal(self._pin).level(now)
        self._stream.settle(now)
        while self._stream.queue:
            self._filter.feed(self._stream.queue.popleft())
        self._filter.at(now)
        return self._filter.level


class DebouncedEdges:
    """The edges of a pin for its reader: debounced, and inverted if the line is active low."""

    def __init__(self, stream: EdgeStream, level: bool, period: float, *, invert: bool) -> None:
        self._stream = stream
        self._filter = Filter(level, period)
        self._period = period
        self._invert = invert
        self._ready: deque[Edge] = deque(maxlen=EDGE_BUFFER)

    @property
    def dropped(self) -> int:
        """The number of raw edges that were dropped."""
        return self._stream.dropped

    def __aiter__(self) -> DebouncedEdges:
        return self

    async def __anext__(self) -> Edge:
        edge = await self._next() if self._period else await anext(self._stream)
        return Edge(edge.high != self._invert, edge.time)

    async def _next(self) -> Edge:
        await trio.lowlevel.checkpoint()
        while True:
            now = self._stream.now()
            self._stream.settle(now)
            while self._stream.queue:
                if (edge := self._filter.feed(self._stream.queue.popleft())) is not None:
                    self._ready.append(edge)
            if (edge := self._filter.at(now)) is not None:
                self._ready.append(edge)
            if self._ready:
                return self._ready.popleft()
            wake = self._stream.wake = trio.Event()
            with trio.move_on_after(min(self._filter.due(), self._stream.next_edge(now)) - now):
                await wake.wait()
