"""Kernel timers with a resolution of nanoseconds, on a descriptor.

Trio sleeps in epoll with a resolution of milliseconds (epoll_wait(2)); a timerfd (timerfd_create(2)) is more precise.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from hal.linux.clock import trio_offset
from hal.ports.ticks import Ticks

_ABSOLUTE: Final = 1  # TFD_TIMER_ABSTIME of sys/timerfd.h
_CANCEL_ON_SET: Final = 2  # TFD_TIMER_CANCEL_ON_SET
_NEVER: Final = 2**62  # seconds since 1970; the kernel takes the latest time that it knows
_libc: Final = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Setting(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


def _timespec(seconds: float) -> _Timespec:
    return _Timespec(*divmod(max(1, round(seconds * 1e9)), 1_000_000_000))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


class Timer:
    """A timer of the monotonic clock, for one waiting task at a time. `close` releases the descriptor."""

    def __init__(self) -> None:
        self._fd = _checked(_libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC))
        self._offset = trio_offset()

    def arm(self, deadline: float, interval: float = 0.0) -> None:
        """Expire at `deadline` (seconds of Trio's clock), or at once if it has passed; then every `interval` seconds.

        Replaces an earlier deadline. May be called while another task waits.
        """
        self._set(_Setting(_timespec(interval) if interval else _Timespec(), _timespec(deadline - self._offset)))

    def disarm(self) -> None:
        """Cancel the deadline."""
        self._set(_Setting())

    def _set(self, setting: _Setting) -> None:
        _checked(_libc.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(setting), None))

    async def expired(self) -> int:
        """Wait until the timer has expired since the last call; return how often it has."""
        while True:
            await trio.lowlevel.wait_readable(self._fd)
            try:
                return int.from_bytes(os.read(self._fd, 8), sys.byteorder)
            except BlockingIOError:  # armed again in the meantime
                continue

    def close(self) -> None:
        """Release the descriptor; a waiting task raises trio.ClosedResourceError. May be called more than once."""
        if self._fd >= 0:
            trio.lowlevel.notify_closing(self._fd)
            os.close(self._fd)
            self._fd = -1


class ClockChanges:
    """Reports when the clock of the computer is set, for one waiting task. `close` releases the descriptor.

    The kernel does not report a clock that is only made to run faster or slower (adjtime(3)). A time during which the
    computer was suspended may be reported as a change.
    """

    def __init__(self) -> None:
        self._fd = _checked(_libc.timerfd_create(time.CLOCK_REALTIME, os.O_NONBLOCK | os.O_CLOEXEC))
        never = _Setting(_Timespec(), _Timespec(_NEVER, 0))
        _checked(_libc.timerfd_settime(self._fd, _ABSOLUTE | _CANCEL_ON_SET, ctypes.byref(never), None))

    async def next(self) -> None:
        """Wait until the clock has been set since the last call, however often."""
        while True:
            await trio.lowlevel.wait_readable(self._fd)
            try:
                os.read(self._fd, 8)
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno != errno.ECANCELED:
                    raise
                return

    def close(self) -> None:
        """Release the descriptor; a waiting task raises trio.ClosedResourceError. May be called more than once."""
        if self._fd >= 0:
            trio.lowlevel.notify_closing(self._fd)
            os.close(self._fd)
            self._fd = -1


class _Ticks:
    def __init__(self, timer: Timer) -> None:
        self._timer = timer

    def __aiter__(self) -> _Ticks:
        return self

    async def __anext__(self) -> int:
        return await self._timer.expired()


@asynccontextmanager
async def ticks(period: float) -> AsyncIterator[Ticks]:
    """Yield ticks every `period` seconds, the first one period after entering. ValueError if it is not above 0."""
    if not period > 0:
        raise ValueError(f"a period of {period:g} s is not valid: use more than 0")
    timer = Timer()
    try:
        timer.arm(trio.current_time() + period, period)
        yield _Ticks(timer)
    finally:
        timer.close()
