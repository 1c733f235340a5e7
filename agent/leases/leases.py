"""The leases that count now, and the task that notices changes of their files."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog
import trio

from agent.leases import files
from agent.leases.lease import LONGEST, MAX_NOTE, LeaseContent, counted_end, is_name
from schema import ConfigError, ErrorKind, MachineError
from support import RunBlocking
from support.files import Inotify

SETTLE: Final = 0.2
"""Seconds between a change and its effect, so that a program that writes all the time does not occupy the agent."""
RETRY: Final = 60.0
"""Seconds after which the folder is created again, if that fails."""
MAX_PROBLEMS: Final = 10
GRACE: Final = 60.0
"""Seconds after its end for which a lease may still have a file without a problem."""

_log = structlog.get_logger("agent.leases")


class HeldLease(msgspec.Struct, frozen=True):
    """A lease that counts, in the answer of `machine agent lease list`, too. The end is in seconds since 1970."""

    name: str
    until: float
    note: str = ""


class _Entry(NamedTuple):
    file: files.LeaseFile
    end: float  # by the clock that is never set; the lease is over then


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Leases:
    """Leases in a folder. `run_blocking` calls functions in a worker thread.

    The end of a lease is converted once, when its file is first seen, to the clock `since_boot`, so that setting the
    other clock does not change it.
    """

    def __init__(
        self,
        folder: Path,
        run_blocking: RunBlocking,
        wall: Callable[[], float] = time.time,
        since_boot: Callable[[], float] = _since_boot,
    ) -> None:
        self._folder, self._run, self._wall, self._since_boot = folder, run_blocking, wall, since_boot
        self._entries: dict[str, _Entry] = {}
        self._too_many = False
        self._failure = ""  # why the folder cannot be used
        self.on_change: Callable[[], None] = lambda: None
        """Called when leases may have changed. That they end does not count."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Create the folder and notice changes in it until cancelled. `started` after the first attempt."""
        try:
            await self._run(partial(files.prepare, self._folder))
        except OSError as error:
            self._fail(error)
        task_status.started()
        while True:
            try:
                await self._follow()
            except OSError as error:
                self._fail(error)
            await trio.sleep(RETRY)

    async def _follow(self) -> None:
        inotify = Inotify()
        try:
            while True:
                await self._run(partial(files.prepare, self._folder))
                for _, error in inotify.watch({self._folder}):
                    raise error
                inotify.drain()  # prepare changes the folder
                await self._read()
                self.on_change()
                await trio.lowlevel.wait_readable(inotify.fileno())
                await trio.sleep(SETTLE)
        finally:
            inotify.close()

    async def current(self) -> list[HeldLease]:
        """Return the leases that count now; if the folder cannot be read, those that were read before."""
        try:
            await self._read()
        except FileNotFoundError:
            self._entries = {}
        except OSError as error:
            self._fail(error)
        now, boot = self._wall(), self._since_boot()
        return [
            HeldLease(name, now + entry.end - boot, entry.file.content.note)
            for name, entry in self._entries.items()
            if entry.file.content is not None and entry.end > boot
        ]

    @property
    def problems(self) -> tuple[ConfigError, ...]:
        """What is wrong with leases."""
        boot = self._since_boot()
        problems = [problem for entry in self._entries.values() for problem in self._problems_of(entry, boot)]
        if (rest := len(problems) - MAX_PROBLEMS) > 0:
            problems[MAX_PROBLEMS:] = [ConfigError(str(self._folder), f"and {rest} further leases have problems")]
        if self._too_many:
            text = f"it has more than {files.MAX_FILES} files, and only so many leases count"
            problems.append(ConfigError(str(self._folder), text, remedy="delete those that are no longer needed"))
        if self._failure:
            text = f"programs cannot hold off maintenance: {self._failure}"
            problems.append(ConfigError(str(self._folder), text, remedy="move away what has its name"))
        return tuple(problems)

    def _problems_of(self, entry: _Entry, boot: float) -> list[ConfigError]:
        file = entry.file
        path = str(self._folder / os.fsencode(file.name).decode("utf-8", "replace"))
        if file.content is None:
            return [ConfigError(path, file.problem, remedy=file.remedy)]
        if entry.end + GRACE < boot:
            text = "the lease is over, and its file still exists: its program may have failed"
            return [ConfigError(path, text, remedy="delete the file; a program that works renews its lease in time")]
        if file.content.end > counted_end(file.content.end, file.changed) + GRACE:
            text = f"the lease is too long, and counts for {LONGEST / 3600:g} hours"
            return [ConfigError(path, text, remedy="write an earlier end, and renew the lease in time")]
        return []

    async def _read(self) -> None:
        read: files.LeaseFiles = await self._run(partial(files.read, self._folder))
        now, boot = self._wall(), self._since_boot()
        before, self._entries = self._entries, {}
        for file in read.files:
            entry = before.get(file.name)
            if entry is None or entry.file != file:
                entry = _Entry(file, boot + _left(file, now))
            self._entries[file.name] = entry
        self._too_many, self._failure = read.too_many, ""

    def _fail(self, error: OSError) -> None:
        if not self._failure:
            _log.error("the folder of leases cannot be used", path=str(self._folder), error=error.strerror)
        self._failure = error.strerror or type(error).__name__

    # ---- for the control socket

    async def take(self, name: str, seconds: float, note: str = "") -> HeldLease:
        """Take a lease, or replace the one with this name.

        INVALID for a wrong name or time; PRECONDITION if it cannot be stored.
        """
        if not is_name(name):
            remedy = "use at most 64 letters, digits, `.`, `_` and `-`; begin with a letter or digit"
            raise MachineError(f"{name[:80]!r} is not a name of a lease", kind=ErrorKind.INVALID, remedy=remedy)
        if not (math.isfinite(seconds) and 1 <= seconds <= LONGEST):
            raise MachineError(
                f"a lease of {seconds:g} s is not possible",
                kind=ErrorKind.INVALID,
                remedy=f"take it for 1 s to {LONGEST / 3600:g} h and renew it in time; a person can use "
                "`machine agent hold`",
            )
        until = self._wall() + seconds
        content = LeaseContent(math.ceil(until), note[:MAX_NOTE])
        await self._change(name, partial(files.write, self._folder, name, content))
        return HeldLease(name, until, content.note)

    async def release(self, name: str) -> None:
        """End a lease. NOT_FOUND if there is none; PRECONDITION if its file cannot be deleted."""
        if not is_name(name):
            raise MachineError(f"{name[:80]!r} is not a name of a lease", kind=ErrorKind.INVALID)
        await self._change(name, partial(files.remove, self._folder, name))

    async def _change(self, name: str, change: Callable[[], None]) -> None:
        try:
            await self._run(change)
        except OSError as error:
            raise MachineError(
                f"{self._folder / name}: {error.strerror}",
                kind=ErrorKind.PRECONDITION,
                remedy=f"look at the folder {self._folder}",
            ) from None
        self.on_change()


def _left(file: files.LeaseFile, now: float) -> float:
    """Return the seconds for which a lease counts that is seen for the first time."""
    return 0.0 if file.content is None else min(counted_end(file.content.end, file.changed) - now, LONGEST)
