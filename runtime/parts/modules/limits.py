"""Resource limits of module processes: limits that the kernel enforces, and measured usage."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

from schema.document import ModuleLimits

if sys.platform == "win32":
    from runtime.programs.limits_windows import keep as keep
    from runtime.programs.limits_windows import measured
else:
    import os
    import resource
    from collections.abc import Iterator
    from contextlib import suppress
    from pathlib import Path

    OOM_ADJUSTMENT: Final = 300  # of 1000: when memory runs out, the kernel kills a module before the server

    def keep(pid: int, limits: ModuleLimits) -> None:
        """Set the kernel's limits for a process that was just started. Do nothing if it has already ended."""
        with suppress(ProcessLookupError, PermissionError):
            if limits.open_files:
                hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
                most = limits.open_files if hard == resource.RLIM_INFINITY else min(limits.open_files, hard)
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
            if limits.nice:
                own = os.getpriority(os.PRIO_PROCESS, 0)  # root could raise the priority of the module above it
                os.setpriority(os.PRIO_PROCESS, pid, max(limits.nice, own))
        with suppress(OSError):
            Path(f"/proc/{pid}/oom_score_adj").write_text(str(OOM_ADJUSTMENT))

    def measured(pid: int) -> tuple[int, int]:
        """Return the resident bytes, and the number of processes and threads, of a process and its descendants."""
        memory = processes = 0
        page = resource.getpagesize()
        for descendant in _descendants(pid):
            with suppress(OSError, IndexError, ValueError):  # the process has just ended
                memory += int(Path(f"/proc/{descendant}/statm").read_bytes().split()[1]) * page
                processes += len(os.listdir(f"/proc/{descendant}/task"))
        return memory, processes

    def _descendants(pid: int) -> Iterator[int]:
        waiting = [pid]
        while waiting:
            parent = waiting.pop()
            yield parent
            with suppress(OSError):
                for task in os.listdir(f"/proc/{parent}/task"):
                    with suppress(OSError):
                        waiting.extend(map(int, Path(f"/proc/{parent}/task/{task}/children").read_bytes().split()))


MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """Total usage of a process and all its descendants."""

    memory: int = 0  # resident bytes; shared pages count once for each process
    processes: int = 0  # including threads


def usage(pid: int) -> ProcessUsage:
    """Return the current usage of a process and its descendants, except those that were reparented."""
    return ProcessUsage(*measured(pid))


def exceeded(limits: ModuleLimits, used: ProcessUsage) -> str:
    """Return a description of the limit that is exceeded, or an empty string."""
    if limits.memory_mb and used.memory > limits.memory_mb * MIB:
        return f"it uses {used.memory / MIB:.0f} MiB of memory, more than limits.memory_mb = {limits.memory_mb:g}"
    if limits.processes and used.processes > limits.processes:
        return f"it has {used.processes} processes and threads, more than limits.processes = {limits.processes}"
    return ""
