"""Readings on their way from a resource to the disk: bounded, so that a slow disk slows capture and fills no memory."""

from __future__ import annotations

from typing import Final

import trio

from runtime.data.encode import Record

LARGEST: Final = 8 * 1024 * 1024  # bytes that wait, or one reading if that is larger


class Backlog:
    """A queue of records; `put` waits while it is full, `wait` until there is something to do."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._records: list[Record] = []
        self._size = 0
        self._space = trio.Event()
        self._wake = trio.Event()
        self._pressing = trio.Event()
        self.closed = False

    async def put(self, record: Record) -> None:
        """Add one, waiting for room; it is in the queue if and only if this returns."""
        while self._records and (len(self._records) >= self._limit or self._size + len(record.data) > LARGEST):
            await self._space.wait()
        await trio.lowlevel.checkpoint_if_cancelled()
        self._records.append(record)
        self._size += len(record.data)
        self._wake.set()
        if 2 * len(self._records) >= self._limit or 2 * self._size >= LARGEST:
            self._pressing.set()

    async def wait(self) -> None:
        """Return when there are records, or `nudge` or `close` was called since the last `take`."""
        await self._wake.wait()

    async def pressing(self) -> None:
        """Return when it is half full, or as `wait` for `nudge` and `close`: there is no time to wait for more."""
        await self._pressing.wait()

    def take(self) -> list[Record]:
        """All records, oldest first."""
        records, self._records, self._size = self._records, [], 0
        self._space.set()
        self._space = trio.Event()
        self._wake = trio.Event()
        self._pressing = trio.Event()
        if self.closed:
            self.nudge()
        return records

    def nudge(self) -> None:
        """Wake whoever waits."""
        self._wake.set()
        self._pressing.set()

    def close(self) -> None:
        """Nothing more will come."""
        self.closed = True
        self.nudge()
