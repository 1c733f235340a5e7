"""What a module may use: bounds that the kernel keeps, and what it uses now. Linux."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schema.modules import ModuleLimits

MIB: Final = 1024 * 1024
OOM_ADJUSTMENT: Final = 300  # of 1000: when memory runs out the kernel ends a module before the server


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and all its descendants use together."""

    memory: int = 0  # resident bytes, pages that several share counted for each
    processes: int = 0  # with threads


def keep(pid: int, limits: ModuleLimits) -> None:
    """Have the kernel keep the limits of a process that was just started. One that has ended already is no error."""
    with suppress(ProcessLookupError, PermissionError):
        if limits.open_files:
            hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
            most = limits.open_files if hard == resource.RLIM_INFINITY else min(limits.open_files, hard)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
        if limits.nice:
            os.setpriority(os.PRIO_PROCESS, pid, limits.nice)
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(OOM_ADJUSTMENT))


def usage(pid: int) -> Usage:
    """What a process uses now with everything it started that has not been given to another parent."""
    memory = processes = 0
    page = resource.getpagesize()
    for one in _descendants(pid):
        with suppress(OSError, IndexError, ValueError):  # it has just ended
            memory += int(Path(f"/proc/{one}/statm").read_bytes().split()[1]) * page
            processes += len(os.listdir(f"/proc/{one}/task"))
    return Usage(memory, processes)


def exceeded(limits: ModuleLimits, used: Usage) -> str:
    """Which limit is exceeded, in words; empty if none is."""
    if limits.memory_mb and used.memory > limits.memory_mb * MIB:
        return f"it uses {used.memory / MIB:.0f} MiB of memory, more than limits.memory_mb = {limits.memory_mb:g}"
    if limits.processes and used.processes > limits.processes:
        return f"it has {used.processes} processes and threads, more than limits.processes = {limits.processes}"
    return ""


def _descendants(pid: int) -> Iterator[int]:
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        yield one
        with suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):
                with suppress(OSError):
                    waiting.extend(map(int, Path(f"/proc/{one}/task/{task}/children").read_bytes().split()))
