"""The writer of one method: takes readings from its backlog and writes them to files.

A reading is *written* when the kernel has it; then it survives `kill -9`. It is *committed* when the disk has it; then
it survives a power cut. Unless the disk is too slow, readings are written within WRITE_INTERVAL and committed within
COMMIT_INTERVAL.
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

from runtime.parts.data.counters import Counters
from runtime.parts.data.files.backlog import Backlog
from runtime.parts.data.files.disk import Disk
from runtime.parts.data.files.encode import CaptureRecord
from runtime.parts.data.files.files import CaptureFile, Clock, make_folder, prove

WRITE_INTERVAL: Final = 0.05  # minimum seconds between writes, so that fast methods are written in batches
COMMIT_INTERVAL: Final = 5.0  # maximum seconds from write to commit; ext4's own interval
RETRY_INTERVAL: Final = 1.0  # seconds between attempts to write readings that the disk refused
SLOW: Final = 10.0  # seconds without an answer of the disk until that is reported
UNCOMMITTED_FILES: Final = 16  # maximum uncommitted files with one reading each


NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a disk that works but is full."""


class DiskReports(Protocol):
    """Receives reports about a disk. `user` identifies the user of the disk."""

    def refused(self, user: object, error: OSError) -> None:
        """Report that the disk has refused a write."""

    def accepted(self, user: object) -> None:
        """Report that the disk works again, or that `user` does not use it any more."""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The folder and the format of one method's files."""

    folder: Path
    header: Callable[[str], bytes]  # by media type; framed DataCaptureMetadata
    binary: bool  # each reading is a separate file
    largest: int  # maximum bytes of a file, unless a single reading is larger
    clock: Clock = time.time_ns


class Files:
    """The open files of one method. Blocking. The counters are correct even if a method raises an exception."""

    def __init__(self, layout: FileLayout, counters: Counters) -> None:
        self._layout = layout
        self._counters = counters
        self._open: list[CaptureFile] = []  # at most one of a tabular method
        self._uncommitted = 0
        self._doubtful = False  # the disk has failed: data that the kernel accepts may never reach it

    def write(self, records: list[CaptureRecord]) -> None:
        """Write the records, and remove written ones from the list. After an OSError, the rest is in the list.

        After a failure of the disk, all files are closed, because their content is uncertain and a disk that became
        read-only must be unmounted for repair. Nothing is written until a test file shows that the disk works.
        """
        try:
            self._write_all(records)
        except OSError as error:
            if error.errno not in NO_ROOM:
                self.abandon()
            raise

    def _write_all(self, records: list[CaptureRecord]) -> None:
        layout = self._layout
        if self._doubtful:
            make_folder(layout.folder)
            prove(layout.folder)
            self._doubtful = False
        while records:
            if layout.binary:
                self._write(self._new(records[0].mime_type), records[0].data, 1)
                del records[0]
                if len(self._open) >= UNCOMMITTED_FILES:
                    self.finish()
                continue
            file = self._open[0] if self._open else self._new("")
            count, size = 0, file.size
            for record in records:
                if size + len(record.data) > layout.largest and count + file.readings:
                    break
                count, size = count + 1, size + len(record.data)
            if count:
                self._write(file, b"".join(record.data for record in records[:count]), count)
                del records[:count]
            if records:
                self.finish()

    def _new(self, mime_type: str) -> CaptureFile:
        file = CaptureFile(self._layout.folder, self._layout.header(mime_type), self._layout.clock)
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
        """Synchronize everything written to disk, and count it as committed. Raises OSError."""
        if self._layout.binary:
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
        """Synchronize, rename and close all files. Raises OSError."""
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
        """Close the files without renaming them and leave them to recovery: the disk has failed or capture ends."""
        self._doubtful = True
        for file in self._open:
            file.abandon()
        self._open.clear()
        self._uncommitted = 0


class Writer:
    """The writer of one method. `run` ends after `close`, when everything is written and all files are closed."""

    def __init__(
        self,
        layout: FileLayout,
        disk: Disk,
        reports: DiskReports,
        log: structlog.stdlib.BoundLogger,
        *,
        queue: int,
        counters: Counters | None = None,
    ) -> None:
        self.counters = counters or Counters()
        self.backlog = Backlog(queue)
        self.done = trio.Event()
        self._files = Files(layout, self.counters)
        self._disk = disk
        self._reports = reports
        self._log = log
        self._urgent = trio.Event()  # a caller waits until files are closed
        self._flushed: list[trio.Event] = []

    async def run(self) -> None:
        """Write readings until `close` is called. If this is cancelled, the files are left to recovery."""
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
            self._disk.post(self._files.abandon)  # not directly: the thread may still use the files
            self._reports.accepted(self)
            self.done.set()

    async def _write(self, records: list[CaptureRecord]) -> None:
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
        self._reports.accepted(self)
        return True

    async def _report_slow(self) -> None:
        await trio.sleep(SLOW)
        self._refused(OSError(errno.ETIMEDOUT, f"the disk has not answered for {SLOW:g} s"))

    def _refused(self, error: OSError) -> None:
        self.counters.last_error = str(error)
        self._reports.refused(self, error)

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
        """Record that no more readings will come; `run` writes the rest and ends."""
        self.backlog.close()
        self._urgent.set()


async def _cancel_after(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
