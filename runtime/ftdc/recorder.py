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

Sync = Callable[[Callable[[], None]], Awaitable[None]]
"""Carries a blocking wait out elsewhere."""


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
            await Diary(Sampler(self._machine).sample, ring, worker.run).run(task_status=task_status)


class Diary:
    """Writes what `sample` says each PERIOD. What the disk refuses is dropped, and said once."""

    def __init__(self, sample: Callable[[], dict[str, float]], ring: FileRing, sync: Sync) -> None:
        self._sample = sample
        self._ring = ring
        self._sync = sync
        self._encoder = Encoder()
        self._waiting: list[tuple[int, dict[str, float]]] = []  # taken while the disk was busy
        self._syncing = False
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
                self._write()
                self._ring.close()

    def _take(self, nursery: trio.Nursery, due: float) -> None:
        values = self._sample()
        values["trio.LateMs"] = 1000 * (trio.current_time() - due)
        self._waiting.append((time.time_ns(), values))
        if self._syncing:
            return  # a write would wait for the disk
        self._write()
        if self._since_sync >= SYNCED_EACH and self._ring.is_open:
            self._since_sync, self._syncing = 0, True
            nursery.start_soon(self._wait_for_disk, self._ring.sync())

    def _write(self) -> None:
        """Write what is waiting; drop it if the disk refuses."""
        waiting, self._waiting = self._waiting, []
        if trio.current_time() < self._retry_at:
            self.dropped += len(waiting)
            return
        try:
            for when, values in waiting:
                if not self._ring.is_open or self._ring.is_full:
                    self._ring.open(datetime.now(UTC))
                    self._encoder.clear()
                self._ring.write(self._encoder.encode(when, values))
                self._since_sync += 1
        except OSError as error:
            self._refused(error, len(waiting))
        else:
            if self._failure and waiting:
                self._log.info("diagnostic data is kept again", folder=str(self._ring.folder), dropped=self.dropped)
                self._failure = ""

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

    async def _wait_for_disk(self, wait: Callable[[], None]) -> None:
        try:
            await self._sync(wait)
        except OSError as error:
            self._refused(error, 0)
        finally:
            self._syncing = False
