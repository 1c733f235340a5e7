"""The capture folder of one data manager: its writers, recovery and deletion."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from runtime.parts.data.counters import Counters
from runtime.parts.data.files.disk import Disk
from runtime.parts.data.files.files import Clock, probe
from runtime.parts.data.files.health import DiskHealth, unusable
from runtime.parts.data.files.messages import CaptureSource
from runtime.parts.data.files.names import folder_of
from runtime.parts.data.files.recover import Recovered, recover
from runtime.parts.data.files.retention import Deleted, Limits, disk_of, make_room
from runtime.parts.data.files.writer import NO_ROOM, FileLayout, Writer

CHECK_INTERVAL: Final = 30.0  # seconds between two checks of the disk's usage; reference value


class Store:
    """A capture folder. `report` is called with the reason if writing to it fails, and with "" when it works again."""

    def __init__(
        self,
        folder: Path,
        disk: Disk,
        log: structlog.stdlib.BoundLogger,
        *,
        largest: int,
        tags: tuple[str, ...] = (),
        report: Callable[[str], None] = lambda reason: None,
        clock: Clock = time.time_ns,
    ) -> None:
        self.folder = folder
        self.disk = disk
        self.log = log
        self.tags = tags
        self.clock = clock
        self.health = DiskHealth(folder, log, self._disk_changed)
        self.recovered = Recovered()
        self._prepared = True  # files abandoned by a killed process or after a disk failure are recovered
        self.deleted_files = 0
        self.deleted_bytes = 0
        self.disk_used = 0.0  # 0 to 1, at the last check
        self._largest = largest
        self._writers: dict[str, Writer] = {}
        self._counters: dict[str, Counters] = {}
        self._warned = False
        self._report = report
        self._held: set[Path] = set()  # files being uploaded; used only in the disk's thread
        self._check_now = trio.Event()  # requests a check of the disk now

    def _disk_changed(self, reason: str) -> None:
        """Report a failure or the recovery of the disk, and check the disk's usage and abandoned files."""
        self._prepared = self._prepared and bool(reason)
        self._check_now.set()
        self._report(reason)

    async def prepare(self) -> None:
        """Create the folder, and recover files that a killed process left open.

        Raises MachineError if the folder cannot be written to. A full disk is not an error, because files may be
        uploaded or deleted: `keep_room` reports it, and completes the preparation as soon as there is room.
        """
        try:
            await self._recover()
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise unusable(self.folder, error) from error
            self._prepared = False

    async def _recover(self) -> None:
        await self.disk.run(partial(probe, self.folder))
        result = await self.disk.run(partial(recover, self.folder))
        if not self._prepared:
            result = replace(result, in_use=0)  # these are files of this process
        self.recovered = self.recovered.and_then(result)
        if result != Recovered():
            self.log.warning(
                "recovered files that were open when machine-server ended or the disk failed", **asdict(result)
            )

    async def _prepare_again(self) -> None:
        try:
            await self._recover()
        except OSError as error:
            self.health.refused(self, error)
        else:
            self._prepared = True
            self.health.accepted(self)

    @contextmanager
    def writing(self, key: str, source: CaptureSource, queue: int) -> Iterator[Writer]:
        """Provide a writer for one method, with counters under `key`. The caller runs and closes it."""
        counters = self._counters.setdefault(key, Counters())
        folder = self.folder / folder_of(source.component_type, source.component_name, source.method)
        layout = FileLayout(folder, source.header, source.binary, self._largest, self.clock)
        writer = Writer(layout, self.disk, self.health, self.log.bind(capture=key), queue=queue, counters=counters)
        self._writers[key] = writer
        try:
            yield writer
        finally:
            if self._writers.get(key) is writer:
                del self._writers[key]

    async def flush(self) -> None:
        """Return when every reading taken so far is in a closed file, or the disk has refused it."""
        async with trio.open_nursery() as nursery:
            for writer in self._writers.values():
                nursery.start_soon(writer.flush)

    @asynccontextmanager
    async def held(self, path: Path) -> AsyncIterator[None]:
        """Protect a file from deletion while the context is open. Raises FileNotFoundError if it does not exist."""
        try:
            await self.disk.run(partial(self._hold, path))
            yield
        finally:
            self.disk.post(partial(self._held.discard, path))

    def _hold(self, path: Path) -> None:
        path.lstat()
        self._held.add(path)

    async def keep_room(self, limits: Limits) -> None:
        """Check the disk and delete files as `limits` say, until cancelled."""
        while True:
            try:
                deleted = await self.disk.run(partial(make_room, self.folder, limits, disk_of, self._held))
            except OSError as error:
                self.log.error("the usage of the disk cannot be read", error=str(error))
            else:
                self._note(deleted, limits)
            if not self._prepared:
                await self._prepare_again()
            with trio.move_on_after(CHECK_INTERVAL):
                await self._check_now.wait()
            self._check_now = trio.Event()

    def _note(self, deleted: Deleted, limits: Limits) -> None:
        self.disk_used = deleted.usage.ratio
        self.deleted_files += deleted.files
        self.deleted_bytes += deleted.bytes
        if deleted.files:
            self.log.warning(
                "deleted captured files because the disk is nearly full",
                files=deleted.files,
                bytes=deleted.bytes,
                of_files=len(deleted.usage.files),
                disk_used=round(deleted.usage.ratio, 3),
                threshold=limits.disk,
            )
        if deleted.warn and not self._warned:
            self.log.warning(
                "the disk is nearly full, but not because of captured files: none are deleted",
                disk_used=round(deleted.usage.ratio, 3),
                captured=round(deleted.usage.folder_ratio, 3),
                threshold=limits.folder,
            )
        self._warned = deleted.warn

    def status(self) -> Mapping[str, Any]:
        """Return the status for people: captured methods, recovery, deletion."""
        return {
            "capture_dir": str(self.folder),
            "problem": self.health.reason,
            "methods": {
                key: {"capturing": key in self._writers, **counters.as_mapping()}
                for key, counters in sorted(self._counters.items())
            },
            "recovered": asdict(self.recovered),
            "deleted": {"files": self.deleted_files, "bytes": self.deleted_bytes},
            "disk_used": round(self.disk_used, 3),
        }
