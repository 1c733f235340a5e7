"""Processes of a Job Object, which ends them all when its handle is closed, also by the end of this process."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from ctypes import wintypes
from typing import Any, Final

import trio

assert sys.platform == "win32"

# From winnt.h and processthreadsapi.h
_LIMITS: Final = 9  # JobObjectExtendedLimitInformation
_PORT: Final = 7  # JobObjectAssociateCompletionPortInformation
_KILL_ON_CLOSE: Final = 0x2000
_NO_PROCESS: Final = 4  # JOB_OBJECT_MSG_ACTIVE_PROCESS_ZERO
_NEW_GROUP: Final = 0x200
_SUSPENDED: Final = 0x4
_KILL: Final = 9  # what SIGKILL is elsewhere
_KILLED: Final = 1  # exit status of a process that was killed

_kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel32.CreateJobObjectW.restype = ctypes.c_void_p
_ntdll = ctypes.WinDLL("ntdll")


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", wintypes.DWORD),
        ("smallest_set", ctypes.c_size_t),
        ("largest_set", ctypes.c_size_t),
        ("processes", wintypes.DWORD),
        ("affinity", ctypes.c_size_t),
        ("priority", wintypes.DWORD),
        ("scheduling", wintypes.DWORD),
    )


class _ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("basic", _BasicLimits),
        ("transfers", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    )


class _Association(ctypes.Structure):
    _fields_ = (("key", ctypes.c_size_t), ("port", ctypes.c_void_p))


class JobProcesses:
    """A process and all its descendants. Use `process` for its pipes only, as on other systems."""

    def __init__(self, command: Sequence[str], process: trio.Process, job: int, messages: Any) -> None:
        self.process = process
        self.command = command
        self.pid = process.pid
        self._job = ctypes.c_void_p(job)
        self._messages = messages  # trio.lowlevel.UnboundedQueue
        self._empty = False

    async def wait(self) -> int:
        """Wait for the first process to end; return its exit status. A killed process has a status like any other."""
        return await self.process.wait()

    async def signal(self, number: int) -> None:
        """Send CTRL_BREAK to the first process and those that share its group; any other signal kills all."""
        if number == signal.CTRL_BREAK_EVENT:
            os.kill(self.pid, signal.CTRL_BREAK_EVENT)
        else:
            _kernel32.TerminateJobObject(self._job, _KILLED)
        await trio.lowlevel.checkpoint()

    async def ended(self) -> None:
        """Wait until no process of the group runs."""
        while not self._empty:
            batch = await self._messages.get_batch()
            if any(message.dwNumberOfBytesTransferred == _NO_PROCESS for message in batch):
                self._empty = True
                self._messages.put_nowait(batch[-1])  # wakes the next task that waits here
        await trio.lowlevel.checkpoint()

    async def resume(self) -> None:
        """Do nothing: a process that debuggers have stopped is theirs."""
        await trio.lowlevel.checkpoint()

    async def strike(self) -> None:
        """Kill all processes of the group, without waiting for their end."""
        await self.signal(_KILL)

    async def end(self, grace: float) -> None:
        """Ask all processes to end, kill them after `grace` seconds, and wait until none runs."""
        if not self._empty:
            try:
                await self.signal(signal.CTRL_BREAK_EVENT)
            except OSError:
                pass  # without a console there is no way to ask
            else:
                with trio.move_on_after(grace):
                    await self.ended()
        await self.kill()

    async def kill(self) -> None:
        """Kill all processes of the group, and wait for their end."""
        await self.strike()
        await self.ended()


@asynccontextmanager
async def start_tree(
    command: Sequence[str], *, session: bool, daemons: bool, options: dict[str, Any]
) -> AsyncIterator[JobProcesses]:
    """Start a process in a Job Object. The caller ends it: see `process_group`. Raises OSError."""
    with _monitored() as (key, messages):
        job = _create_job(key)
        try:
            flags = options.pop("creationflags", 0) | _NEW_GROUP | _SUSPENDED
            process = await trio.lowlevel.open_process(command, creationflags=flags, **options)
            handle = ctypes.c_void_p(int(process._proc._handle))  # type: ignore[attr-defined]
            try:
                # It belongs to the job before it runs, so that nothing which it starts can be outside.
                if not _kernel32.AssignProcessToJobObject(ctypes.c_void_p(job), handle):
                    raise ctypes.WinError(ctypes.get_last_error())
                _ntdll.NtResumeProcess(handle)
            except BaseException:
                process.kill()
                raise
            yield JobProcesses(command, process, job, messages)
        finally:
            _kernel32.CloseHandle(ctypes.c_void_p(job))


@contextmanager
def _monitored() -> Iterator[tuple[int, Any]]:
    """Yield a key of Trio's completion port, and the queue of what is reported for it."""
    with ExitStack() as stack:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", trio.TrioDeprecationWarning)  # of the queue, which Trio itself chooses
            entered = stack.enter_context(trio.lowlevel.monitor_completion_key())
        yield entered


def _create_job(key: int) -> int:
    """Return a new Job Object that reports to Trio's completion port."""
    job: int | None = _kernel32.CreateJobObjectW(None, None)
    if not job:
        raise ctypes.WinError(ctypes.get_last_error())
    limits = _ExtendedLimits()
    limits.basic.flags = _KILL_ON_CLOSE
    association = _Association(key, trio.lowlevel.current_iocp())
    for kind, value in ((_LIMITS, limits), (_PORT, association)):
        if not _kernel32.SetInformationJobObject(ctypes.c_void_p(job), kind, ctypes.byref(value), ctypes.sizeof(value)):
            error = ctypes.WinError(ctypes.get_last_error())
            _kernel32.CloseHandle(ctypes.c_void_p(job))
            raise error
    return job
