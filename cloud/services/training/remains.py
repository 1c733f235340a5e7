"""Removal of the folders of ended jobs, while others run."""

from __future__ import annotations

from functools import partial
from math import inf
from pathlib import Path
from typing import Final

import structlog
import trio

from support import Worker
from support.foreign import remove

SLICE: Final = 1.0  # seconds for one folder before the next has its turn
_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.training")


class Remains:
    """Folders to remove. A job can write millions of files, so no job waits for a removal."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[Path](inf)

    def add(self, folder: Path) -> None:
        """Remove a folder soon."""
        self._send.send_nowait(folder)

    async def remove(self, folder: Path, worker: Worker) -> None:
        """Remove a folder, or as much of it as possible in SLICE seconds; the rest follows soon. Log what stays."""
        removal = await worker.run(partial(remove, folder, seconds=SLICE))
        if removal.left:
            _log.error("files of a training job are left on the disk: remove them", reason=str(removal))
        elif removal.out_of_time:
            self.add(folder)

    async def run(self) -> None:
        """Remove folders until cancelled, each for SLICE seconds at a time. The next start removes what is left."""
        worker = Worker("folders of ended training jobs")
        async with worker.opened():
            async for folder in self._receive:
                await self.remove(folder, worker)
