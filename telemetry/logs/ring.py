"""A ring buffer with the newest log messages, for pages and calls that show them."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from itertools import islice
from typing import Final

import trio

from telemetry.logs.entry import Entry

DEFAULT_SIZE: Final = 2000
"""Number of entries: about a megabyte of typical messages."""


class LogRing:
    """A bounded log sink that drops the oldest entry first. Call `write` in the order of `seq`, in Trio's thread."""

    def __init__(self, size: int = DEFAULT_SIZE) -> None:
        self._entries: deque[Entry] = deque(maxlen=size)
        self._changed: trio.Event | None = None  # exists only while a reader waits

    @property
    def last(self) -> int:
        """`seq` of the newest entry ever written; 0 before the first."""
        return self._entries[-1].seq if self._entries else 0

    def write(self, entry: Entry) -> None:
        """Add an entry and wake the readers."""
        self._entries.append(entry)
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    def entries(self, since: int = 0) -> tuple[Entry, ...]:
        """Return the entries with a `seq` above `since`, oldest first."""
        new = 0
        for entry in reversed(self._entries):
            if entry.seq <= since:
                break
            new += 1
        return tuple(islice(self._entries, len(self._entries) - new, None))

    async def changes(self, since: int = 0) -> AsyncIterator[tuple[Entry, ...]]:
        """Iterate over the entries with a `seq` above `since` as they arrive; never yields an empty tuple.

        A slow reader gets several entries at once; one that is too slow misses the oldest entries, which shows as a gap
        in `seq`, but never the newest. Ends only by cancellation or when the reader closes it.
        """
        while True:
            while self.last <= since:
                if self._changed is None:
                    self._changed = trio.Event()
                await self._changed.wait()
            new = self.entries(since)
            since = new[-1].seq
            yield new

    def close(self) -> None:
        """Do nothing: the entries stay readable."""
