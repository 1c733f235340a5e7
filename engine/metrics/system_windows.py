"""Metrics of processes and of the computer on Windows. What the system does not tell is skipped."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import time
from collections.abc import MutableMapping
from ctypes import wintypes
from typing import Final

assert sys.platform == "win32"

from support.windows import QUERY_PROCESS, kernel32, memory_of, opened_process

_MIB: Final = 2**20
_TICKS: Final = 10**7  # per second, of FILETIME
_EPOCH: Final = 11_644_473_600  # seconds from 1601, the zero of FILETIME, to 1970


class _Computer(ctypes.Structure):
    _fields_ = (
        ("size", wintypes.DWORD),
        ("load", wintypes.DWORD),
        ("total", ctypes.c_uint64),
        ("available", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 5),
    )


def measure_process(values: MutableMapping[str, float], name: str, pid: int | str = "self") -> None:
    """Add `<name>.UserCPUSecs`, `SystemCPUSecs`, `ElapsedTimeSecs`, `VssMB` and `RssMB` of a process."""
    number = os.getpid() if pid == "self" else int(pid)
    with opened_process(number, QUERY_PROCESS) as handle:
        if handle is None:
            return
        begun, ended, system, user = (ctypes.c_uint64() for _ in range(4))
        if kernel32.GetProcessTimes(handle, *map(ctypes.byref, (begun, ended, system, user))):
            values[f"{name}.UserCPUSecs"] = user.value / _TICKS
            values[f"{name}.SystemCPUSecs"] = system.value / _TICKS
            values[f"{name}.ElapsedTimeSecs"] = time.time() + _EPOCH - begun.value / _TICKS
        if (memory := memory_of(handle)).resident:
            values[f"{name}.VssMB"] = memory.committed / _MIB
            values[f"{name}.RssMB"] = memory.resident / _MIB


def measure_network(values: MutableMapping[str, float]) -> None:
    """Add nothing."""


def measure_host(values: MutableMapping[str, float]) -> None:
    """Add the computer's processor time (`host.BusySecs`, `IdleSecs`, over all cores), and the share of memory and of
    the disk with Windows that is used.
    """
    idle, system, user = (ctypes.c_uint64() for _ in range(3))
    if kernel32.GetSystemTimes(*map(ctypes.byref, (idle, system, user))):  # the time of the system includes idle time
        values["host.BusySecs"] = (system.value + user.value - idle.value) / _TICKS
        values["host.IdleSecs"] = idle.value / _TICKS
    computer = _Computer(size=ctypes.sizeof(_Computer))
    if kernel32.GlobalMemoryStatusEx(ctypes.byref(computer)) and computer.total:
        values["host.MemoryUsedPct"] = 100 * (1 - computer.available / computer.total)
    try:
        disk = shutil.disk_usage(os.environ.get("SYSTEMDRIVE", "C:") + "\\")
    except OSError:
        return
    if disk.total:
        values["host.DiskUsedPct"] = 100 * (1 - disk.free / disk.total)


def count_descriptors() -> int:
    """Return the number of open handles of this process; 0 if they cannot be counted."""
    count = wintypes.DWORD()
    own = ctypes.c_void_p(kernel32.GetCurrentProcess())
    return count.value if kernel32.GetProcessHandleCount(own, ctypes.byref(count)) else 0
