"""Processor time of the event loop: by counting all calls with cProfile, or by sampling stacks with a timer.

Counting halves the speed of the process, and shows how often each function called which others. Sampling costs almost
nothing, and shows the stacks in which the time was spent. The time of other threads is attributed to the stack of the
event loop at that moment.
"""

from __future__ import annotations

import io
import marshal
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from cProfile import Profile
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Any, Final

import trio

from schema import ErrorKind, MachineError

PERIOD: Final = 0.005  # seconds of processor time between samples
DEEPEST: Final = 200  # innermost frames that are kept of a stack

Stacks = Counter[tuple[str, ...]]
"""Number of samples by stack, outermost frame first."""


@contextmanager
def counting() -> Iterator[Profile]:
    """Count all calls in this thread within the context. Raises MachineError (PRECONDITION) if a profile is running."""
    if sys.getprofile() is not None:
        raise MachineError(
            "another profile is running",
            kind=ErrorKind.PRECONDITION,
            remedy="wait until it ends; -cpuprofile profiles the whole run",
        )
    profile = Profile()
    profile.enable()
    try:
        yield profile
    finally:
        profile.disable()


@contextmanager
def sampling(period: float = PERIOD) -> Iterator[Stacks]:
    """Sample the event loop's stack after every `period` seconds of processor time of the process.

    Raises MachineError: PRECONDITION if sampling is running already, UNSUPPORTED outside the main thread.
    """
    if signal.getsignal(signal.SIGPROF) is not signal.SIG_DFL:
        raise MachineError("stacks are already being sampled", kind=ErrorKind.PRECONDITION, remedy="wait until it ends")
    stacks: Stacks = Counter()

    def take(number: int, frame: FrameType | None) -> None:
        stacks[_stack(frame)] += 1

    try:
        signal.signal(signal.SIGPROF, take)
    except ValueError:
        raise MachineError(
            "stacks can be sampled only in the main thread", kind=ErrorKind.UNSUPPORTED, remedy="use format=text"
        ) from None
    signal.siginterrupt(signal.SIGPROF, False)  # system calls of other threads are restarted
    signal.setitimer(signal.ITIMER_PROF, period, period)
    try:
        yield stacks
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)  # a signal may be pending
        signal.signal(signal.SIGPROF, signal.SIG_DFL)


def _stack(frame: FrameType | None) -> tuple[str, ...]:
    frames: list[str] = []
    while frame is not None and len(frames) < DEEPEST:
        frames.append(_name(frame.f_code))
        frame = frame.f_back
    frames.append(_task())
    return tuple(reversed(frames))


def _task() -> str:
    """Return the name of the running task, which the stack does not show."""
    try:
        return trio.lowlevel.current_task().name
    except RuntimeError:
        return "event loop"


def _name(code: CodeType) -> str:
    parts = PurePath(code.co_filename).parts
    return f"{'/'.join(parts[-3:])}:{code.co_qualname}"


def collapsed(stacks: Stacks) -> str:
    """Return a line for each stack: frames separated by semicolons, and the count, as flame graph tools read it."""
    return "".join(
        f"{';'.join(frame.replace(';', ',') for frame in stack)} {count}\n" for stack, count in stacks.most_common()
    )


def pstats_file(profile: Profile) -> bytes:
    """Return a file for `python -m pstats` and snakeviz."""
    return marshal.dumps(_stats(profile).stats)


def table(profile: Profile, *, lines: int = 60) -> str:
    """Return two tables as text: functions by cumulative time, and functions by own time."""
    text = io.StringIO()
    statistics = _stats(profile, text)
    statistics.sort_stats("cumulative").print_stats(lines)
    statistics.sort_stats("tottime").print_stats(lines)
    return text.getvalue()


def _stats(profile: Profile, stream: io.StringIO | None = None) -> Any:
    from pstats import Stats

    return Stats(profile, stream=stream or io.StringIO())
