"""Where the time of the event loop goes: every call counted by cProfile, or stacks taken by a timer.

Counting slows the whole process down to about half and shows which function called which how often. Taking stacks costs
almost nothing and shows which way the time went; what other threads use counts for where the event loop is meanwhile.
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

from schema.errors import ErrorKind, MachineError

PERIOD: Final = 0.005  # seconds of used processor time from one stack to the next
DEEPEST: Final = 200  # frames of a stack that are kept

Stacks = Counter[tuple[str, ...]]
"""How often each stack was seen, outermost frame first."""


@contextmanager
def counting() -> Iterator[Profile]:
    """Count every call in this thread meanwhile; MachineError (PRECONDITION) if somebody counts already."""
    if sys.getprofile() is not None:
        raise MachineError(
            "a profile is being taken already",
            kind=ErrorKind.PRECONDITION,
            remedy="wait for it to end; -cpuprofile takes one of the whole run",
        )
    profile = Profile()
    profile.enable()
    try:
        yield profile
    finally:
        profile.disable()


@contextmanager
def sampling(period: float = PERIOD) -> Iterator[Stacks]:
    """Take the stack of the event loop's thread whenever the process has used `period` of processor time.

    Only from the main thread. MachineError (PRECONDITION) if somebody does so already.
    """
    if signal.getsignal(signal.SIGPROF) is not signal.SIG_DFL:
        raise MachineError("stacks are being taken already", kind=ErrorKind.PRECONDITION, remedy="wait for that to end")
    stacks: Stacks = Counter()

    def take(number: int, frame: FrameType | None) -> None:
        stacks[_stack(frame)] += 1

    try:
        signal.signal(signal.SIGPROF, take)
    except ValueError:
        raise MachineError(
            "stacks are taken in the main thread only", kind=ErrorKind.UNSUPPORTED, remedy="ask for format=text"
        ) from None
    signal.siginterrupt(signal.SIGPROF, False)  # transactions of other threads go on
    signal.setitimer(signal.ITIMER_PROF, period, period)
    try:
        yield stacks
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)  # one may be on its way
        signal.signal(signal.SIGPROF, signal.SIG_DFL)


def _stack(frame: FrameType | None) -> tuple[str, ...]:
    frames: list[str] = []
    while frame is not None and len(frames) < DEEPEST:
        frames.append(_name(frame.f_code))
        frame = frame.f_back
    frames.append(_task())
    return tuple(reversed(frames))


def _task() -> str:
    """The task that runs: coroutines of other tasks are on no stack."""
    try:
        return trio.lowlevel.current_task().name
    except RuntimeError:
        return "event loop"


def _name(code: CodeType) -> str:
    parts = PurePath(code.co_filename).parts
    return f"{'/'.join(parts[-2:])}:{code.co_qualname}"


def collapsed(stacks: Stacks) -> str:
    """One line for each stack, frames by semicolons and its count: what flame graph tools and speedscope read."""
    return "".join(
        f"{';'.join(frame.replace(';', ',') for frame in stack)} {count}\n" for stack, count in stacks.most_common()
    )


def pstats_file(profile: Profile) -> bytes:
    """What `python -m pstats` and snakeviz read."""
    return marshal.dumps(_stats(profile).stats)


def table(profile: Profile, *, lines: int = 60) -> str:
    """The functions with the most time in themselves and in what they call, as text."""
    text = io.StringIO()
    statistics = _stats(profile, text)
    statistics.sort_stats("cumulative").print_stats(lines)
    statistics.sort_stats("tottime").print_stats(lines)
    return text.getvalue()


def _stats(profile: Profile, stream: io.StringIO | None = None) -> Any:
    from pstats import Stats

    return Stats(profile, stream=stream or io.StringIO())
