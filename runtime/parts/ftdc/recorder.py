"""The recorder of full-time data capture: writes one sample per second into a ring of files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog
import trio

from engine import PartContext, home
from engine.metrics import History
from engine.planning import INTERNAL
from nursery_graph import Node, Restart
from schema.document import MachineDocument
from support import RunBlocking, Worker
from support.files import FileRing
from telemetry.logs.logger_names import ROOT
from telemetry.metrics import FtdcEncoder

NODE: Final = f"{INTERNAL}ftdc"
FOLDER: Final = "diagnostics.data"
LOCAL: Final = "local-config"  # instead of the part id of a machine without a cloud
PREFIX: Final = "machine-server-"
SUFFIX: Final = ".ftdc"

PERIOD: Final = 1.0  # seconds between two samples; reference value
LIMIT: Final = 10_000_000  # bytes of a file; reference value
FILES: Final = 20  # reference value
SYNC_INTERVAL: Final = 30  # samples between two synchronizations; reference value
RETRY: Final = 30.0  # seconds until writing is retried after an error
WAITING: Final = 600  # samples kept while the disk does not respond; older ones are dropped
LAST_LIMIT: Final = 2.0  # seconds to write the last samples when the recorder ends


T = TypeVar("T")


async def _run_directly(function: Callable[[], T], /) -> T:
    return function()


def folder_of(base: Path, part: str) -> Path:
    """Return the folder of a machine's files. `base` is the server's home; `part` is empty without a cloud."""
    return base / FOLDER / (part.replace(os.sep, "_").lstrip(".") or LOCAL)


class Recorder:
    """The part of machine-server that records full-time data."""

    def __init__(self, context: PartContext) -> None:
        self._sample = context.sample
        self._history = context.history
        self._environment = context.environment

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return one node, on which nothing depends."""
        part = document.cloud.id if document.cloud is not None else ""
        return [Node(NODE, partial(self._live, part), version=part, restart=Restart(intensity=1_000_000))]

    async def _live(self, part: str, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        try:
            folder = folder_of(home(self._environment), part)
        except RuntimeError:  # a user without a home
            structlog.get_logger(f"{ROOT}.ftdc").warning(
                "diagnostic data is not recorded", reason="this user has no home folder", remedy="set MACHINE_HOME"
            )
            task_status.started()
            await trio.sleep_forever()
        worker = Worker("ftdc")
        async with worker.opened():
            ring = FileRing(folder, PREFIX, SUFFIX, limit=LIMIT, keep=FILES)
            diary = Diary(self._sample, ring, worker.run, worker.run, self._history)
            await diary.run(task_status=task_status)


class Diary:
    """Writes the result of `sample` every PERIOD. Samples that cannot be written are dropped, with one warning.
    `sync` runs the synchronization with the disk and `write` runs the writes; both may block. `history` gets every
    sample, also one that cannot be written.
    """

    def __init__(
        self,
        sample: Callable[[], dict[str, float]],
        ring: FileRing,
        sync: RunBlocking,
        write: RunBlocking = _run_directly,
        history: History | None = None,
    ) -> None:
        self._sample = sample
        self._ring = ring
        self._sync = sync
        self._run_write = write
        self._history = history
        self._encoder = FtdcEncoder()
        self._waiting: list[tuple[int, dict[str, float]]] = []  # samples taken while the disk was busy
        self._busy = False  # writing or synchronizing
        self._writing = False
        self._since_sync = 0
        self._retry_at = 0.0
        self._failure = ""
        self.dropped = 0
        self._log = structlog.get_logger(f"{ROOT}.ftdc")

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Record until cancelled. Errors of the disk are logged, not raised."""
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
        now = time.time_ns()
        if self._history is not None:
            self._history.add(now // 1_000_000, values)
        self._waiting.append((now, values))
        self.dropped += len(self._waiting[:-WAITING])
        del self._waiting[:-WAITING]
        if not self._busy:
            self._busy = True
            nursery.start_soon(self._write_and_sync)

    async def _write_and_sync(self) -> None:
        try:
            await self._write()
            if self._since_sync >= SYNC_INTERVAL and self._ring.is_open:
                self._since_sync = 0
                await self._sync(self._ring.sync())
        except OSError as error:
            self._failed(error, 0)
        finally:
            self._busy = False

    async def _write(self) -> None:
        """Write the waiting samples, or drop them on an error.

        If this is cancelled, the write continues in its thread and `_writing` stays set.
        """
        waiting, self._waiting = self._waiting, []
        if trio.current_time() < self._retry_at:
            self.dropped += len(waiting)
            return
        self._writing = True
        try:
            await self._run_write(partial(self._append, waiting))
        except OSError as error:
            self._writing = False
            self._failed(error, len(waiting))
            return
        self._writing = False
        if self._failure and waiting:
            self._log.info("diagnostic data is recorded again", folder=str(self._ring.folder), dropped=self.dropped)
            self._failure = ""

    def _append(self, samples: list[tuple[int, dict[str, float]]]) -> None:
        for when, values in samples:
            if not self._ring.is_open or self._ring.is_full:
                self._ring.open(datetime.now(UTC))
                self._encoder.clear()
            self._ring.write(self._encoder.encode(when, values))
            self._since_sync += 1

    def _failed(self, error: OSError, lost: int) -> None:
        self.dropped += lost
        self._retry_at = trio.current_time() + RETRY
        self._ring.close()
        if not self._failure:
            self._failure = error.strerror or str(error)
            self._log.warning(
                "diagnostic data is not recorded",
                folder=str(self._ring.folder),
                reason=self._failure,
                remedy="free space, allow this user to write there, or start with -ftdc=false",
            )
