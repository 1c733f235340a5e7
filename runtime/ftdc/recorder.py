"""The node that keeps the diary: a sample each second, into a ring of files."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from nursery_graph import Node, Restart
from runtime.ftdc.ring import FileRing
from runtime.machine import INTERNAL
from runtime.metrics.sample import Sampler
from runtime.modules.command import home
from runtime.parts import Surroundings
from schema.machine import MachineDocument
from support.worker import Worker
from telemetry.ftdc import Encoder
from telemetry.names import ROOT

NODE: Final = f"{INTERNAL}ftdc"
FOLDER: Final = "diagnostics.data"
LOCAL: Final = "local-config"  # in place of the part id of a machine without cloud
PREFIX: Final = "machine-server-"
SUFFIX: Final = ".ftdc"

PERIOD: Final = 1.0  # seconds between two samples; reference value
LIMIT: Final = 10_000_000  # bytes of a file; reference value
KEEP: Final = 20  # files; reference value
SYNCED_EACH: Final = 30  # samples; reference value
RETRY: Final = 30.0  # seconds until a disk that refused is tried again
WAITING: Final = 600  # samples that may wait for a disk that does not answer; older ones are dropped
LAST_LIMIT: Final = 2.0  # seconds for the last samples when the recorder ends

Elsewhere = Callable[[Callable[[], None]], Awaitable[None]]
"""Carries out what may have to wait for the disk."""


async def _here(function: Callable[[], None]) -> None:
    function()


def folder_of(base: Path, part: str) -> Path:
    """Where the files of a machine are: `base` is the server's home, `part` its part id, empty without cloud."""
    return base / FOLDER / (part.replace(os.sep, "_").lstrip(".") or LOCAL)


class Recorder:
    """A part of the machine."""

    def __init__(self, around: Surroundings) -> None:
        self._machine = around.machine
        self._environment = around.environment

    def nodes(self, document: MachineDocument) -> list[Node]:
        """One, which nothing depends on."""
        part = document.cloud.id if document.cloud is not None else ""
        return [Node(NODE, partial(self._live, part), version=part, restart=Restart(intensity=1_000_000))]

    async def _live(self, part: str, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        try:
            folder = folder_of(home(self._environment), part)
        except RuntimeError:  # a user without a home
            structlog.get_logger(f"{ROOT}.ftdc").warning(
                "diagnostic data is not kept", reason="this user has no home folder", remedy="set MACHINE_HOME"
            )
            task_status.started()
            await trio.sleep_forever()
        worker = Worker("ftdc")
        async with worker.opened():
            ring = FileRing(folder, PREFIX, SUFFIX, limit=LIMIT, keep=KEEP)
            diary = Diary(Sampler(self._machine).sample, ring, worker.run, worker.run)
            await diary.run(task_status=task_status)


class Diary:
    """Writes what `sample` says each PERIOD. What the disk refuses is dropped, and said once.

    `sync` waits for the disk, and `write` carries out writes: these wait as well if the disk stands still.
    """

    def __init__(
        self, sample: Callable[[], dict[str, float]], ring: FileRing, sync: Elsewhere, write: Elsewhere = _here
    ) -> None:
        self._sample = sample
        self._ring = ring
        self._sync = sync
        self._write_by = write
        self._encoder = Encoder()
        self._waiting: list[tuple[int, dict[str, float]]] = []  # taken while the disk was busy
        self._busy = False  # with the disk
        self._writing = False
        self._since_sync = 0
        self._retry_at = 0.0
        self._failure = ""
        self.dropped = 0
        self._log = structlog.get_logger(f"{ROOT}.ftdc")

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Until cancelled; the disk never ends it."""
        async with trio.open_nursery() as nursery:
            task_status.started()
            due = trio.current_time()
            try:
                while True:
                    self._take(nursery, due)
                    due = max(due + PERIOD, trio.current_time())
                    await trio.sleep_until(due)
            finally:
                if not self._writing:
                    with trio.move_on_after(LAST_LIMIT, shield=True):
                        await self._write()
                if not self._writing:
                    self._ring.close()

    def _take(self, nursery: trio.Nursery, due: float) -> None:
        values = self._sample()
        values["trio.LateMs"] = 1000 * (trio.current_time() - due)
        self._waiting.append((time.time_ns(), values))
        self.dropped += len(self._waiting[:-WAITING])
        del self._waiting[:-WAITING]
        if not self._busy:
            self._busy = True
            nursery.start_soon(self._to_disk)

    async def _to_disk(self) -> None:
        try:
            await self._write()
            if self._since_sync >= SYNCED_EACH and self._ring.is_open:
                self._since_sync = 0
                await self._sync(self._ring.sync())
        except OSError as error:
            self._refused(error, 0)
        finally:
            self._busy = False

    async def _write(self) -> None:
        """Write what is waiting; drop it if the disk refuses. Cancelled, it goes on and `_writing` stays."""
        waiting, self._waiting = self._waiting, []
        if trio.current_time() < self._retry_at:
            self.dropped += len(waiting)
            return
        self._writing = True
        try:
            await self._write_by(partial(self._append, waiting))
        except OSError as error:
            self._writing = False
            self._refused(error, len(waiting))
            return
        self._writing = False
        if self._failure and waiting:
            self._log.info("diagnostic data is kept again", folder=str(self._ring.folder), dropped=self.dropped)
            self._failure = ""

    def _append(self, samples: list[tuple[int, dict[str, float]]]) -> None:
        for when, values in samples:
            if not self._ring.is_open or self._ring.is_full:
                self._ring.open(datetime.now(UTC))
                self._encoder.clear()
            self._ring.write(self._encoder.encode(when, values))
            self._since_sync += 1

    def _refused(self, error: OSError, lost: int) -> None:
        self.dropped += lost
        self._retry_at = trio.current_time() + RETRY
        self._ring.close()
        if not self._failure:
            self._failure = error.strerror or str(error)
            self._log.warning(
                "diagnostic data is not kept",
                folder=str(self._ring.folder),
                reason=self._failure,
                remedy="free space, let this user write there, or start with -ftdc=false",
            )
