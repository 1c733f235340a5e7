"""Resource limits and usage of module processes on Windows."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import wintypes
from typing import Final

from schema.document import ModuleLimits

assert sys.platform == "win32"

_SET: Final = 0x0200  # PROCESS_SET_INFORMATION
_QUERY: Final = 0x1000  # PROCESS_QUERY_LIMITED_INFORMATION
_BELOW_NORMAL: Final = 0x4000
_IDLE: Final = 0x40
_VERY_NICE: Final = 10  # from here on, a process runs only when nothing else does
_PROCESSES: Final = 0x2  # TH32CS_SNAPPROCESS
_INVALID: Final = ctypes.c_void_p(-1).value

_kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel32.OpenProcess.restype = ctypes.c_void_p
_kernel32.CreateToolhelp32Snapshot.restype = ctypes.c_void_p


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


class _Memory(ctypes.Structure):
    _fields_ = (
        ("size", wintypes.DWORD),
        ("faults", wintypes.DWORD),
        ("peak_resident", ctypes.c_size_t),
        ("resident", ctypes.c_size_t),
        ("others", ctypes.c_size_t * 6),
    )


def keep(pid: int, limits: ModuleLimits) -> None:
    """Lower the priority of a process as `nice` says. Windows has no limit of open files."""
    if limits.nice > 0:
        with _opened(pid, _SET) as handle:
            if handle is not None:
                _kernel32.SetPriorityClass(handle, _IDLE if limits.nice >= _VERY_NICE else _BELOW_NORMAL)


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
    snapshot = _kernel32.CreateToolhelp32Snapshot(_PROCESSES, 0)
    if snapshot == _INVALID:
        return
    handle, entry = ctypes.c_void_p(snapshot), _Entry(size=ctypes.sizeof(_Entry))
    try:
        more = _kernel32.Process32FirstW(handle, ctypes.byref(entry))
        while more:
            yield entry.pid, entry.parent, entry.threads
            more = _kernel32.Process32NextW(handle, ctypes.byref(entry))
    finally:
        _kernel32.CloseHandle(handle)


def _resident(pid: int) -> int:
    memory = _Memory(size=ctypes.sizeof(_Memory))
    with _opened(pid, _QUERY) as handle:
        if handle is None or not _kernel32.K32GetProcessMemoryInfo(handle, ctypes.byref(memory), memory.size):
            return 0
    return int(memory.resident)


@contextmanager
def _opened(pid: int, access: int) -> Iterator[ctypes.c_void_p | None]:
    """Yield a handle of a process; None if it has ended or belongs to another user."""
    opened = _kernel32.OpenProcess(access, False, pid)
    if not opened:
        yield None
        return
    try:
        yield ctypes.c_void_p(opened)
    finally:
        _kernel32.CloseHandle(ctypes.c_void_p(opened))
