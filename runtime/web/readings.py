"""Live readings: a sensor is read once a second while somebody watches, once for all who watch."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

import trio

from rpc.pages import words
from schema.errors import MachineError

PERIOD: Final = 1.0  # seconds between readings of one sensor

Read: TypeAlias = Callable[[str, str, Mapping[str, str]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a sensor said, or why it did not; `at` is the time of Trio's clock when it was asked."""

    at: float
    values: tuple[tuple[str, str, float | None], ...] = ()  # key, text, and the number if it is one
    error: str = ""


class Shared:
    """The sensors that somebody watches. There is no task: whoever finds the newest reading too old, reads."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._watched: dict[str, Watched] = {}

    @contextmanager
    def watch(self, name: str) -> Iterator[Watched]:
        """Watch the sensor `name`; what the last one who watches leaves behind is nothing."""
        watched = self._watched.setdefault(name, Watched(name, self._read))
        watched.watchers += 1
        try:
            yield watched
        finally:
            watched.watchers -= 1
            if watched.watchers == 0:
                del self._watched[name]


class Watched:
    """One sensor and its newest reading."""

    def __init__(self, name: str, read: Read) -> None:
        self.watchers = 0
        self._name = name
        self._read = read
        self._turn = trio.Lock()
        self._newest = Reading(-math.inf)

    async def next(self, after: float) -> Reading:
        """A reading asked for later than `after`, and no sooner than PERIOD after the one before it.

        Those who ask while another reads wait for that reading. Cancelling the one who reads cancels the call to the
        sensor; then the next in line reads.
        """
        async with self._turn:
            if self._newest.at <= after:
                await trio.sleep_until(self._newest.at + PERIOD)
                self._newest = await self._once()
            return self._newest

    async def _once(self) -> Reading:
        at = trio.current_time()
        try:
            values = await self._read(self._name, "get_readings", {})
        except MachineError as error:
            return Reading(at, error=str(error))
        except Exception as error:  # a driver's own; the page shows what the log would
            return Reading(at, error=f"{type(error).__name__}: {error}")
        if not isinstance(values, Mapping):
            return Reading(at, error=f"the readings are {type(values).__name__}, not values by name")
        return Reading(at, tuple(words.readings(values)))
