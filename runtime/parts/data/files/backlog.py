"""A bounded queue of readings between a resource and the disk: a slow disk slows capture, but does not fill memory."""

from __future__ import annotations

from typing import Final

import trio

from runtime.parts.data.files.encode import CaptureRecord

LARGEST: Final = 8 * 1024 * 1024  # maximum waiting bytes, or one reading if that is larger


class Backlog:
    """A queue of at most `limit` records and LARGEST bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._records: list[CaptureRecord] = []
        self._size = 0
        self._space = trio.Event()
        self._wake = trio.Event()
        self._pressing = trio.Event()
        self.closed = False

    async def put(self, record: CaptureRecord) -> None:
        """Add a record, after waiting for room. If this is cancelled, the record is not in the queue."""
        while self._records and (len(self._records) >= self._limit or self._size + len(record.data) > LARGEST):
            await self._space.wait()
        await trio.lowlevel.checkpoint_if_cancelled()
        self._records.append(record)
        self._size += len(record.data)
        self._wake.set()
        if 2 * len(self._records) >= self._limit or 2 * self._size >= LARGEST:
            self._pressing.set()

    async def wait(self) -> None:
        """Return when there are records, or when `nudge` or `close` was called since the last `take`."""
        await self._wake.wait()

    async def pressing(self) -> None:
        """Return when the queue is half full, or when `nudge` or `close` was called since the last `take`."""
        await self._pressing.wait()

    def take(self) -> list[CaptureRecord]:
        """Remove and return all records, oldest first."""
        records, self._records, self._size = self._records, [], 0
        self._space.set()
        self._space = trio.Event()
        self._wake = trio.Event()
        self._pressing = trio.Event()
        if self.closed:
            self.nudge()
        return records

    def nudge(self) -> None:
        """Wake the tasks in `wait` and `pressing`."""
        self._wake.set()
        self._pressing.set()

    def close(self) -> None:
        """Record that no more records will come, and wake waiting tasks."""
        self.closed = True
        self.nudge()
