"""Logs the output of a module's processes line by line, and keeps the newest lines to explain why they ended."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import structlog
import trio

from telemetry.logs import Lines
from telemetry.logs.logger_names import STDERR_SUFFIX, STDOUT_SUFFIX

TAIL: Final = 5  # lines that are reported when the process ends by itself
LONGEST: Final = 300  # characters of each reported line
DRAIN_LIMIT: Final = 1.0  # seconds after the end of the process, because a grandchild may keep the pipes open


class Output:
    """The output of a process, logged as `<logger>.StdOut` (info) and `<logger>.StdErr` (warning)."""

    def __init__(self, logger: str) -> None:
        self._logger = logger
        self._tail: deque[str] = deque(maxlen=TAIL)
        self._open = 0
        self._drained = trio.Event()

    def follow(self, nursery: trio.Nursery, process: trio.Process) -> None:
        """Read both pipes in `nursery` until they end."""
        for pipe, suffix in ((process.stdout, STDOUT_SUFFIX), (process.stderr, STDERR_SUFFIX)):
            assert pipe is not None
            self._open += 1
            nursery.start_soon(self._read, pipe, suffix)

    async def ended(self) -> None:
        """Wait until all output is read, at most DRAIN_LIMIT; call it after the process has ended."""
        if self._open:
            with trio.move_on_after(DRAIN_LIMIT):
                await self._drained.wait()

    def last_output(self) -> str:
        """Return the newest lines as the end of a sentence; empty if there are none."""
        return f"; its last output: {' | '.join(self._tail)}" if self._tail else ""

    async def _read(self, pipe: Any, suffix: str) -> None:
        log = structlog.get_logger(f"{self._logger}{suffix}")
        write = log.info if suffix == STDOUT_SUFFIX else log.warning
        lines = Lines()
        async for data in pipe:
            for line in lines.feed(data):
                self._log_line(write, line)
        for line in lines.rest():
            self._log_line(write, line)
        self._open -= 1
        if not self._open:
            self._drained.set()

    def _log_line(self, write: Any, text: str) -> None:
        self._tail.append(text[:LONGEST])
        write(text)
