"""Resource limits and usage of module processes on Windows."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from ctypes import wintypes
from typing import Final

from schema.document import ModuleLimits

assert sys.platform == "win32"

from support.windows import INVALID_HANDLE, QUERY_PROCESS, kernel32, memory_of, opened_process

_SET: Final = 0x0200  # PROCESS_SET_INFORMATION
_BELOW_NORMAL: Final = 0x4000
_IDLE: Final = 0x40
_VERY_NICE: Final = 10  # from here on, a process runs only when nothing else does
_PROCESSES: Final = 0x2  # TH32CS_SNAPPROCESS


class _Entry(ctypes.Structure):
    _fields_ = (
        ("size", wintypes.DWORD),
        ("usage", wintypes.DWORD),
        ("pid", wintypes.DWORD),
        ("heap", ctypes.c_void_p),
        ("module", wintypes.DWORD),
        ("threads", wintypes.DWORD),
        ("parent", wintypes.DWORD),
        ("priority", wintypes.LONG),
        ("flags", wintypes.DWORD),
        ("name", wintypes.WCHAR * 260),
    )


def keep(pid: int, limits: ModuleLimits) -> None:
    """Lower the priority of a process as `nice` says. Windows has no limit of open files."""
    if limits.nice > 0:
        with opened_process(pid, _SET) as handle:
            if handle is not None:
                kernel32.SetPriorityClass(handle, _IDLE if limits.nice >= _VERY_NICE else _BELOW_NORMAL)


def measured(pid: int) -> tuple[int, int]:
    """Return the resident bytes, and the number of processes and threads, of a process and its descendants."""
    threads, children = {}, dict[int, list[int]]()
    for process, parent, count in _processes():
        threads[process] = count
        children.setdefault(parent, []).append(process)
    total, tasks, waiting, seen = 0, 0, [pid], {pid}
    while waiting:
        process = waiting.pop()
        tasks += threads.get(process, 0)
        total += _resident(process)
        fresh = [child for child in children.get(process, ()) if child not in seen]
        seen.update(fresh)
        waiting += fresh
    return total, tasks


def _processes() -> Iterator[tuple[int, int, int]]:
    """Yield id, parent and number of threads of all processes."""
    snapshot = kernel32.CreateToolhelp32Snapshot(_PROCESSES, 0)
    if snapshot == INVALID_HANDLE:
        return
    handle, entry = ctypes.c_void_p(snapshot), _Entry(size=ctypes.sizeof(_Entry))
    try:
        more = kernel32.Process32FirstW(handle, ctypes.byref(entry))
        while more:
            yield entry.pid, entry.parent, entry.threads
            more = kernel32.Process32NextW(handle, ctypes.byref(entry))
    finally:
        kernel32.CloseHandle(handle)


def _resident(pid: int) -> int:
    with opened_process(pid, QUERY_PROCESS) as handle:
        return int(memory_of(handle).resident) if handle is not None else 0
