"""Simulated digital lines: reading, driving, waves, edges and counters."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import trio

from hal.errors import Fault, HalError
from hal.ports.digital import Edge, EdgeEvents
from hal.sim.gpio.signal import HIGH, LOW, Constant, Signal, Square
from hal.sim.gpio.wiring import Pin, Wiring

EDGE_BUFFER: Final = 4096  # maximum edges queued for a slow reader
DEFAULT_FREQUENCY: Final = 800.0  # Hz
MAX_FREQUENCY: Final = 1e6  # Hz

Clock = Callable[[], float]


class EdgeStream:
    """The edges of a pin, computed when they are awaited."""

    def __init__(self, wiring: Wiring, pin: Pin, clock: Clock) -> None:
        self._wiring = wiring
        self._pin = pin
        self._clock = clock
        self._seen = clock()
        self._level = wiring.signal(pin).level(self._seen)
        self.queue: deque[Edge] = deque()
        self.wake = trio.Event()
        self.dropped = 0

    def settle(self, t: float) -> None:
        """Queue the edges until `t`."""
        signal = self._wiring.signal(self._pin)
        excess = sum(signal.edges(self._seen, t)) - EDGE_BUFFER
        if excess > 0:
            self.dropped += excess + len(self.queue)
            self.queue.clear()
            self._seen = _moment_before(signal, self._seen, t)
        while (edge := signal.next_edge(self._seen)) is not None and edge[0] <= t:
            self._seen, self._level = edge
            self._put(Edge(self._level, self._seen))
        self._seen = t
        self._level = signal.level(t)

    def changed(self, t: float) -> None:
        """Queue an edge if the level has changed, and wake the reader, because the time of the next edge may differ."""
        level = self._wiring.signal(self._pin).level(t)
        if level != self._level:
            self._level = level
            self._put(Edge(level, t))
        self.wake.set()

    def _put(self, edge: Edge) -> None:
        if len(self.queue) >= EDGE_BUFFER:
            self.queue.popleft()
            self.dropped += 1
        self.queue.append(edge)

    def __aiter__(self) -> EdgeStream:
        return self

    async def __anext__(self) -> Edge:
        return (await first_edge([self]))[1]

    def next_edge(self, now: float) -> float:
        """Return the time of the next edge if the pin is not changed; infinity if there is none."""
        edge = self._wiring.signal(self._pin).next_edge(now)
        return math.inf if edge is None else edge[0]

    def now(self) -> float:
        """Return the time of the clock."""
        return self._clock()


async def first_edge(streams: Sequence[EdgeStream]) -> tuple[int, Edge]:
    """Wait for the earliest edge of several streams; return the index of its stream, and the edge."""
    await trio.lowlevel.checkpoint()
    while True:
        now = streams[0].now()
        for stream in streams:
            stream.settle(now)
        ready = [(stream.queue[0].time, index) for index, stream in enumerate(streams) if stream.queue]
        if ready:
            index = min(ready)[1]
            return index, streams[index].queue.popleft()
        wake = trio.Event()
        for stream in streams:
            stream.wake = wake
        with trio.move_on_after(min(stream.next_edge(now) for stream in streams) - now):
            await wake.wait()


def _moment_before(signal: Signal, start: float, end: float) -> float:
    """Return the time within [start, end] after which about EDGE_BUFFER edges remain."""
    low, high = start, end
    for _ in range(60):
        middle = (low + high) / 2
        if sum(signal.edges(middle, end)) > EDGE_BUFFER:
            low = middle
        else:
            high = middle
    return high


class EdgeCounter:
    """Counts the rising edges of a pin without waking for each."""

    def __init__(self, wiring: Wiring, pin: Pin, now: float) -> None:
        self._wiring = wiring
        self._pin = pin
        self._count = 0
        self._seen = now
        self._level = wiring.signal(pin).level(now)
        pin.watchers.append(self)

    def close(self) -> None:
        """Stop counting."""
        self._pin.watchers.remove(self)

    def count(self, t: float) -> int:
        """Return the number of rising edges until `t`."""
        return self._count + self._wiring.signal(self._pin).edges(self._seen, t)[0]

    def settle(self, t: float) -> None:
        """Add the edges of the signal that ends at `t`."""
        self._count = self.count(t)
        self._seen = t
        self._level = self._wiring.signal(self._pin).level(t)

    def changed(self, t: float) -> None:
        """Count a change of the signal to high as an edge."""
        level = self._wiring.signal(self._pin).level(t)
        self._count += level and not self._level
        self._level = level


class SimPin:
    """A pin of a simulated board: digital input and output, and PWM."""

    def __init__(self, wiring: Wiring, pin: Pin, clock: Clock) -> None:
        self._wiring = wiring
        self._pin = pin
        self._clock = clock
        self._frequency = DEFAULT_FREQUENCY

    def read(self) -> bool:
        """Return the current level."""
        return self._wiring.signal(self._pin).level(self._clock())

    def write(self, high: bool) -> None:
        """Drive the pin."""
        self._drive(HIGH if high else LOW)

    def mean(self) -> float:
        """Return the mean level, 0 to 1, as for a slow circuit."""
        return self._wiring.signal(self._pin).mean(self._clock())

    def set_mean(self, value: float) -> None:
        """Drive a voltage, as a fraction of the full range (0 to 1)."""
        self._drive(Constant(value))

    def wave(self) -> tuple[float, float]:
        """Return duty and frequency."""
        return self.mean(), self._frequency

    def set_wave(self, duty: float, frequency: float) -> None:
        """Drive a square wave."""
        if not 0 < frequency <= MAX_FREQUENCY:
            raise HalError(
                f"{self._pin}: {frequency:g} Hz is not a valid frequency",
                Fault.UNSUPPORTED,
                remedy=f"use a frequency above 0 and up to {MAX_FREQUENCY:g} Hz",
            )
        self._frequency = frequency
        now = self._clock()
        self._drive(Square(now, frequency, duty) if 0 < duty < 1 else Constant(float(duty)))

    def set_frequency(self, frequency: float) -> None:
        """Set the frequency of the current wave, if there is one, and of later waves."""
        drive = self._pin.drive
        if isinstance(drive, Square):
            self.set_wave(drive.duty, frequency)
        elif not 0 < frequency <= MAX_FREQUENCY:
            self.set_wave(0.0, frequency)
        else:
            self._frequency = frequency

    def _drive(self, signal: Signal) -> None:
        if self._pin.drive != signal or self._wiring.signal(self._pin) != signal:
            self._wiring.set_drive(self._pin, signal, self._clock())

    @contextmanager
    def listening(self) -> Iterator[EdgeStream]:
        """Record the edges while the context is open."""
        stream = EdgeStream(self._wiring, self._pin, self._clock)
        self._pin.watchers.append(stream)
        try:
            yield stream
        finally:
            self._pin.watchers.remove(stream)

    @asynccontextmanager
    async def edges(self) -> AsyncIterator[EdgeEvents]:
        """Listen to the edges while the context is open."""
        with self.listening() as stream:
            yield stream
