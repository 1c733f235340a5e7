"""Structures and calls of kernel32.dll that several modules need."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import wintypes
from typing import Final

assert sys.platform == "win32"

# From winnt.h and fileapi.h
QUERY_PROCESS: Final = 0x1000  # PROCESS_QUERY_LIMITED_INFORMATION
READ: Final = 0x80000000  # GENERIC_READ
WRITE: Final = 0x40000000  # GENERIC_WRITE
SHARE_ALL: Final = 0x1 | 0x2 | 0x4
OPEN_EXISTING: Final = 3
OVERLAPPED: Final = 0x40000000  # FILE_FLAG_OVERLAPPED
INVALID_HANDLE: Final = ctypes.c_void_p(-1).value

kernel32: Final = ctypes.WinDLL("kernel32", use_last_error=True)
"""The library, with the types of the calls that return handles."""

for _name in ("CreateFileW", "CreateIoCompletionPort", "CreateToolhelp32Snapshot", "GetCurrentProcess", "OpenProcess"):
    getattr(kernel32, _name).restype = ctypes.c_void_p


class Overlapped(ctypes.Structure):
    """OVERLAPPED: a request that the system answers later, or the position of one that it answers at once."""

    _fields_ = (
        ("status", ctypes.c_size_t),
        ("transferred", ctypes.c_size_t),
        ("offset", ctypes.c_uint64),
        ("event", ctypes.c_void_p),
    )


class ProcessMemory(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS, in bytes."""

    _fields_ = (
        ("size", wintypes.DWORD),
        ("faults", wintypes.DWORD),
        ("peak_resident", ctypes.c_size_t),
        ("resident", ctypes.c_size_t),
        ("pools", ctypes.c_size_t * 4),
        ("committed", ctypes.c_size_t),
        ("peak_committed", ctypes.c_size_t),
    )


def last_error(path: str | os.PathLike[str] | None = None) -> OSError:
    """Return the error of the last call of this thread, about a path."""
    error = ctypes.WinError(ctypes.get_last_error())
    if path is not None:
        error.filename = os.fspath(path)
    return error


def open_handle(
    path: str | os.PathLike[str], access: int, creation: int, flags: int, *, share: int = SHARE_ALL
) -> ctypes.c_void_p:
    """Return a new handle of a file, folder or pipe, which child processes do not inherit. Raises OSError."""
    opened = kernel32.CreateFileW(os.fspath(path), access, share, None, creation, flags, None)
    if opened == INVALID_HANDLE:
        raise last_error(path)
    return ctypes.c_void_p(opened)


@contextmanager
def opened_process(pid: int, access: int) -> Iterator[ctypes.c_void_p | None]:
    """Yield a handle of a process; None if it has ended or may not be opened."""
    opened = kernel32.OpenProcess(access, False, pid)
    if not opened:
        yield None
        return
    try:
        yield ctypes.c_void_p(opened)
    finally:
        kernel32.CloseHandle(ctypes.c_void_p(opened))


def memory_of(process: ctypes.c_void_p) -> ProcessMemory:
    """Return the memory of a process, by a handle with QUERY_PROCESS; zeros if it cannot be read."""
    memory = ProcessMemory(size=ctypes.sizeof(ProcessMemory))
    kernel32.K32GetProcessMemoryInfo(process, ctypes.byref(memory), memory.size)
    return memory
