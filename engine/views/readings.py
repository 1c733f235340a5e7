"""Live readings: a watched sensor is read once a second, for all of its watchers together."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

import trio

from schema import MachineError
from support.text import words

PERIOD: Final = 1.0  # seconds between readings of one sensor

Read: TypeAlias = Callable[[str, str, Mapping[str, str]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class SensorReading:
    """Readings of a sensor or an error; `at` is the time (Trio's clock) of the request."""

    at: float
    values: tuple[tuple[str, str, float | None], ...] = ()  # key, text, and the value if it is a number
    error: str = ""


class Shared:
    """The watched sensors. No background task runs: a watcher that needs a newer reading reads the sensor."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._watched: dict[str, Watched] = {}

    @contextmanager
    def watch(self, name: str) -> Iterator[Watched]:
        """Watch the sensor `name`; its state is dropped when the last watcher leaves."""
        watched = self._watched.setdefault(name, Watched(name, self._read))
        watched.watchers += 1
        try:
            yield watched
        finally:
            watched.watchers -= 1
            if watched.watchers == 0:
                del self._watched[name]


class Watched:
    """A sensor and its newest reading."""

    def __init__(self, name: str, read: Read) -> None:
        self.watchers = 0
        self._name = name
        self._read = read
        self._reading_lock = trio.Lock()
        self._newest = SensorReading(-math.inf)

    async def next(self, after: float) -> SensorReading:
        """Return a reading requested after the time `after`, and at least PERIOD after the previous one.

        Callers that arrive while another one reads wait for that reading. Cancelling the caller that reads cancels its
        call to the sensor; then the next caller reads.
        """
        async with self._reading_lock:
            if self._newest.at <= after:
                await trio.sleep_until(self._newest.at + PERIOD)
                self._newest = await self._read_once()
            return self._newest

    async def _read_once(self) -> SensorReading:
        at = trio.current_time()
        try:
            values = await self._read(self._name, "get_readings", {})
        except MachineError as error:
            return SensorReading(at, error=str(error))
        except Exception as error:  # from the driver; shown on the page
            return SensorReading(at, error=f"{type(error).__name__}: {error}")
        if not isinstance(values, Mapping):
            return SensorReading(at, error=f"the sensor returned {type(values).__name__} instead of values by name")
        return SensorReading(at, tuple(words.readings(values)))
