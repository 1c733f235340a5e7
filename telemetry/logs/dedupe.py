"""Suppression of repeated log messages. Pure.

A message is noisy when it was output THRESHOLD times in the past WINDOW. The next repetition is replaced by a notice,
further ones are only counted, and when the message is no longer noisy a summary says how many were suppressed.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

THRESHOLD: Final = 3
"""Number of outputs within WINDOW that make a message noisy, from the specification."""

WINDOW: Final = 10.0
"""Seconds, from the specification; the reference server uses one minute."""

MAX_KEYS: Final = 1024
"""Maximum number of messages that are tracked; the least recently logged one is dropped first."""

IGNORED_FIELDS: Final = frozenset({"grpc.time_ms", "grpc.start_time", "log_ts"})
"""Fields that are ignored when messages are compared."""


class DedupeVerdict(Enum):
    """What to do with one message."""

    SHOW = "show"
    NOTICE = "notice"  # show a notice instead: further repetitions are suppressed
    DROP = "drop"


@dataclass(slots=True)
class _Memory:
    shown: list[float] = field(default_factory=list)  # times of the last outputs, at most THRESHOLD
    suppressed: int = 0

    def noisy_until(self) -> float:
        return self.shown[0] + WINDOW


class Deduplicator:
    """Decides which messages to show, by a key of logger, level, text and fields. Reads no clock."""

    def __init__(self) -> None:
        self._memories: OrderedDict[Hashable, _Memory] = OrderedDict()
        self._suppressing: dict[Hashable, _Memory] = {}
        self._deadline = math.inf  # the earliest noisy_until of `_suppressing`

    def step(self, key: Hashable, now: float) -> DedupeVerdict:
        """Decide about a message at `now` (monotonic seconds). Call `expire(now)` first and show what it returns."""
        memory = self._memories.setdefault(key, _Memory())
        self._memories.move_to_end(key)
        memory.shown = [time for time in memory.shown if time + WINDOW > now]
        if len(memory.shown) < THRESHOLD:
            memory.shown.append(now)
            return DedupeVerdict.SHOW
        memory.suppressed += 1
        if memory.suppressed > 1:
            return DedupeVerdict.DROP
        self._suppressing[key] = memory
        self._deadline = min(self._deadline, memory.noisy_until())
        return DedupeVerdict.NOTICE

    def expire(self, now: float) -> list[tuple[Hashable, int]]:
        """Return the keys that are no longer noisy, each once, with the number of suppressed messages."""
        if now < self._deadline and len(self._memories) <= MAX_KEYS:
            return []
        due = self._suppressing.items() if now >= self._deadline else ()
        ended = [(key, memory) for key, memory in due if memory.noisy_until() <= now]
        while len(self._memories) > MAX_KEYS:
            key, memory = self._memories.popitem(last=False)
            if memory.suppressed and memory.noisy_until() > now:
                ended.append((key, memory))
        if not ended:
            return []
        counts = [self._end(key, memory) for key, memory in ended]
        self._deadline = min((memory.noisy_until() for memory in self._suppressing.values()), default=math.inf)
        return counts

    def flush(self) -> list[tuple[Hashable, int]]:
        """Clear the state; return the keys with suppressed messages that were not reported yet, and their number."""
        ended = [self._end(key, memory) for key, memory in list(self._suppressing.items())]
        self._memories.clear()
        self._deadline = math.inf
        return ended

    @property
    def deadline(self) -> float | None:
        """The time from which `expire` returns a key; None if nothing is suppressed."""
        return self._deadline if self._suppressing else None

    def _end(self, key: Hashable, memory: _Memory) -> tuple[Hashable, int]:
        del self._suppressing[key]
        count, memory.suppressed = memory.suppressed, 0
        return key, count
