"""One method's files: takes readings from its backlog and brings them to the disk.

A reading is *written* once the kernel has it: it survives `kill -9`. It is *committed* once the disk has it: it
survives a power cut. Written within WRITE_INTERVAL, committed within COMMIT_INTERVAL while the disk keeps up.
"""

from __future__ import annotations

import errno
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import structlog
import trio

from runtime.data.backlog import Backlog
from runtime.data.counters import Counters
from runtime.data.disk import Disk
from runtime.data.encode import Record
from runtime.data.files import CaptureFile, Clock, make_folder, prove

WRITE_INTERVAL: Final = 0.05  # seconds between two writes at least: fast methods are written in batches
COMMIT_INTERVAL: Final = 5.0  # seconds that a written reading may wait for the disk; ext4's own interval
RETRY_INTERVAL: Final = 1.0  # seconds between two tries to write what the disk refuses
SLOW: Final = 10.0  # seconds without an answer of the disk, after which that is reported
UNCOMMITTED_FILES: Final = 16  # files of one reading each that may wait for the disk


NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a disk that works, and is full."""


class Trouble(Protocol):
    """Hears of a disk that refuses, and that it works again; `who` asks."""

    def refused(self, who: object, error: OSError) -> None:
        """It refuses now."""

    def accepted(self, who: object) -> None:
        """It works, or `who` does not ask any more."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how one method is written."""

    folder: Path
    header: Callable[[str], bytes]  # by media type; framed DataCaptureMetadata
    binary: bool  # each reading is a file
    largest: int  # bytes of a file, unless one reading is larger
    clock: Clock = time.time_ns


class Files:
    """The open files of one method. Blocking; every function leaves the counters right, whatever it raises."""

    def __init__(self, place: Place, counters: Counters) -> None:
        self._place = place
        self._counters = counters
        self._open: list[CaptureFile] = []  # at most one of a tabular method
        self._uncommitted = 0
        self._doubtful = False  # the disk has failed: what the kernel takes may never come to it

    def write(self, records: list[Record]) -> None:
        """Write the records and take them out of the list one by one; OSError leaves those that are not written.

        After a disk has failed, nothing is written before it has proved that it works, and no file stays open: it is
        not certain what is in them, and a disk that became read-only must be unmounted to be repaired.
        """
        try:
            self._write_all(records)
        except OSError as error:
            if error.errno not in NO_ROOM:
                self.abandon()
            raise

    def _write_all(self, records: list[Record]) -> None:
        place = self._place
        if self._doubtful:
            make_folder(place.folder)
            prove(place.folder)
            self._doubtful = False
        while records:
            if place.binary:
                self._write(self._new(records[0].mime_type), records[0].data, 1)
                del records[0]
                if len(self._open) >= UNCOMMITTED_FILES:
                    self.finish()
                continue
            file = self._open[0] if self._open else self._new("")
            count, size = 0, file.size
            for record in records:
                if size + len(record.data) > place.largest and count + file.readings:
                    break
                count, size = count + 1, size + len(record.data)
            if count:
                self._write(file, b"".join(record.data for record in records[:count]), count)
                del records[:count]
            if records:
                self.finish()

    def _new(self, mime_type: str) -> CaptureFile:
        file = CaptureFile(self._place.folder, self._place.header(mime_type), self._place.clock)
        self._counters.bytes += file.size
        self._open.append(file)
        return file

    def _write(self, file: CaptureFile, data: bytes, readings: int) -> None:
        try:
            file.append(data, readings)
        except OSError:
            if not file.readings:
                self._open.remove(file)
                self._counters.bytes -= file.size
                file.discard()
            raise
        self._counters.bytes += len(data)
        self._counters.written += readings
        self._uncommitted += readings

    def commit(self) -> None:
        """Return when all that is written is on the disk. What cannot be proved to be there is not counted as such."""
        if self._place.binary:
            self.finish()
            return
        for file in self._open:
            try:
                file.commit()
            except OSError:
                self.abandon()
                raise
        self._committed()

    def finish(self) -> None:
        """Close all files for good."""
        try:
            while self._open:
                self._open.pop(0).finish()
                self._counters.files += 1
        except OSError:
            self.abandon()
            raise
        self._committed()

    def _committed(self) -> None:
        self._counters.committed += self._uncommitted
        self._uncommitted = 0

    def abandon(self) -> None:
        """Leave the files to recovery, because the disk has failed or capture ends."""
        self._doubtful = True
        for file in self._open:
            file.abandon()
        self._open.clear()
        self._uncommitted = 0


class Writer:
    """Lives as long as its method is captured: `run` ends after `close`, when everything is written and closed."""

    def __init__(
        self,
        place: Place,
        disk: Disk,
        trouble: Trouble,
        log: structlog.stdlib.BoundLogger,
        *,
        queue: int,
        counters: Counters | None = None,
    ) -> None:
        self.counters = counters or Counters()
        self.backlog = Backlog(queue)
        self.done = trio.Event()
        self._files = Files(place, self.counters)
        self._disk = disk
        self._trouble = trouble
        self._log = log
        self._urgent = trio.Event()  # somebody waits for files to be closed
        self._flushed: list[trio.Event] = []

    async def run(self) -> None:
        """Write what comes, until `close`. Cancelled, it leaves its files to recovery."""
        due = math.inf  # when the next commit is
        try:
            while True:
                with trio.move_on_at(due):
                    await self.backlog.wait()
                waiting, self._flushed = self._flushed, []
                ends = self.backlog.closed
                records = self.backlog.take()
                if records:
                    await self._write(records)
                    due = min(due, trio.current_time() + COMMIT_INTERVAL)
                if ends or waiting:
                    await self._try(self._files.finish)
                    due = math.inf
                    for event in waiting:
                        event.set()
                elif trio.current_time() >= due:
                    await self._try(self._files.commit)
                    due = math.inf
                if ends:
                    return
                with trio.move_on_after(WRITE_INTERVAL):
                    await self.backlog.pressing()
        finally:
            self._disk.post(self._files.abandon)  # the thread may still be in one of them
            self._trouble.accepted(self)
            self.done.set()

    async def _write(self, records: list[Record]) -> None:
        while not await self._try(partial(self._files.write, records)):
            if self.backlog.closed:
                self.counters.lost += len(records)
                self._log.error("readings are lost: the disk refused them until capture ended", readings=len(records))
                return
            with trio.move_on_after(RETRY_INTERVAL):
                await self._urgent.wait()

    async def _try(self, work: Callable[[], None]) -> bool:
        failure: OSError | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._report_slow)
            try:
                await self._disk.run(work)
            except OSError as error:
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            self._refused(failure)
            return False
        self._trouble.accepted(self)
        return True

    async def _report_slow(self) -> None:
        await trio.sleep(SLOW)
        self._refused(OSError(errno.ETIMEDOUT, f"the disk has not answered for {SLOW:g} s"))

    def _refused(self, error: OSError) -> None:
        self.counters.last_error = str(error)
        self._trouble.refused(self, error)

    async def flush(self) -> None:
        """Return when all readings taken so far are in closed files, or the disk refused them, or `run` has ended."""
        if self.done.is_set():
            return
        event = trio.Event()
        self._flushed.append(event)
        self._urgent.set()
        self._urgent = trio.Event()
        self.backlog.nudge()
        async with trio.open_nursery() as nursery:  # whichever comes first
            nursery.start_soon(_cancel_after, self.done, nursery.cancel_scope)
            await event.wait()
            nursery.cancel_scope.cancel()

    def close(self) -> None:
        """No more readings come."""
        self.backlog.close()
        self._urgent.set()


async def _cancel_after(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
