"""The end of a process that does not stop in time."""

from __future__ import annotations

import os
import signal
import sys
from typing import Final

from nursery_graph import Overdue

EXIT_STUCK: Final = 3
STOP_LIMIT: Final = 150.0  # seconds for an orderly end; a child may take 130 of them
STALL_LIMIT: Final = 5.0  # seconds after it until the process is ended even if the event loop hangs


def limit_stop(seconds: float = STOP_LIMIT + STALL_LIMIT) -> None:
    """End this process with EXIT_STUCK, also if a task or a thread hangs, unless it has ended after `seconds`."""

    def end(number: int, frame: object) -> None:
        _end(f"machine-agent did not stop within {seconds:g} s\n")

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def end_overdue(overdue: Overdue) -> None:
    """End this process with EXIT_STUCK; write which parts still run, and where."""
    _end(f"machine-agent did not stop within {STOP_LIMIT:g} s; still running:\n{overdue}\n")


def _end(message: str) -> None:
    sys.stderr.write(message)
    sys.stderr.flush()
    os._exit(EXIT_STUCK)
