"""Keep repeated messages from drowning the others.

A message is noisy when it was output THRESHOLD times in the past WINDOW. The first repetition beyond that is replaced
by a notice, further ones are only counted, and when the message is no longer noisy a summary says how many there were.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

THRESHOLD: Final = 3
"""Outputs within WINDOW that make a message noisy; of the specification."""

WINDOW: Final = 10.0
"""Seconds. Of the specification; the reference server differs (one minute)."""

MAX_KEYS: Final = 1024
"""Messages remembered at once; the one that was quiet longest is forgotten first."""

IGNORED_FIELDS: Final = frozenset({"grpc.time_ms", "grpc.start_time", "log_ts"})
"""Fields that do not make two messages different."""


class Verdict(Enum):
    """What to do with one message."""

    SHOW = "show"
    NOTICE = "notice"  # show a notice that suppression begins in its place
    DROP = "drop"


@dataclass(slots=True)
class _Memory:
    shown: list[float] = field(default_factory=list)  # times of the last outputs, at most THRESHOLD
    suppressed: int = 0

    def noisy_until(self) -> float:
        return self.shown[0] + WINDOW


class Deduplicator:
    """Decides about messages by a key that stands for their logger, level, text and fields. Reads no clock."""

    def __init__(self) -> None:
        self._memories: OrderedDict[Hashable, _Memory] = OrderedDict()
        self._suppressing: dict[Hashable, _Memory] = {}
        self._deadline = math.inf  # the earliest noisy_until among them

    def step(self, key: Hashable, now: float) -> Verdict:
        """Judge one message at `now` (seconds, never falling). Call `expire(now)` first and show what it returns."""
        memory = self._memories.setdefault(key, _Memory())
        self._memories.move_to_end(key)
        memory.shown = [time for time in memory.shown if time + WINDOW > now]
        if len(memory.shown) < THRESHOLD:
            memory.shown.append(now)
            return Verdict.SHOW
        memory.suppressed += 1
        if memory.suppressed > 1:
            return Verdict.DROP
        self._suppressing[key] = memory
        self._deadline = min(self._deadline, memory.noisy_until())
        return Verdict.NOTICE

    def expire(self, now: float) -> list[tuple[Hashable, int]]:
        """Keys that are no longer noisy, with how many of each were suppressed; each is returned once."""
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
        """Forget everything; return what was suppressed and not yet reported."""
        ended = [self._end(key, memory) for key, memory in list(self._suppressing.items())]
        self._memories.clear()
        self._deadline = math.inf
        return ended

    @property
    def deadline(self) -> float | None:
        """When the next `expire` will return something; None if nothing is suppressed."""
        return self._deadline if self._suppressing else None

    def _end(self, key: Hashable, memory: _Memory) -> tuple[Hashable, int]:
        del self._suppressing[key]
        count, memory.suppressed = memory.suppressed, 0
        return key, count
