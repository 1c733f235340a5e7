"""Runs hooks."""

from __future__ import annotations

import subprocess
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import structlog
import trio

from agent.hooks.files import NAMES, check, find
from agent.hooks.moments import LIMITS, HookAnswer, HookedChange, HookMoment, ended, environment, shown, too_slow
from schema import ConfigError
from support import ChangeSignal, RunBlocking, ungrouped
from support.files import follow_files

GRACE: Final = 2.0
"""Seconds between SIGTERM and SIGKILL for a hook that takes too long and for what it has left running, which is waited
for as long before."""
MAX_LINES: Final = 100
MAX_LINE: Final = 4096
WAITING: Final = 20
"""Hooks after something that may wait for the one that runs; further ones are not run."""

_log = structlog.get_logger("agent.hooks")


class _After(NamedTuple):
    moment: HookMoment
    change: HookedChange
    variables: Mapping[str, str]


class HookRunner:
    """Implements the port HookRunner of `agent.actions.program`. `run_blocking` calls functions in a worker thread."""

    def __init__(self, folder: Path, run_blocking: RunBlocking) -> None:
        self.problems: tuple[ConfigError, ...] = ()
        """What keeps hooks from being run."""
        self.revision = 0
        """Increased whenever the files of hooks may have changed."""
        self._folder, self._run = folder, run_blocking
        self._changed = ChangeSignal()
        self._send, self._receive = trio.open_memory_channel[_After](WAITING)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the hooks after something, and notice changes of files, until cancelled. `started` after a first look."""
        self.problems = await self._run(partial(check, self._folder))
        for problem in self.problems:
            _log.error("a hook cannot be run", problem=str(problem))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow_files, [self._folder / name for name in NAMES], self._notice, self._not_watched)
            nursery.start_soon(self._check_after_changes)
            task_status.started()
            async for after in self._receive:
                if reason := (await self._run_hook(after.moment, after.variables)).refusal:
                    _log.warning("a hook has failed", hook=after.moment.value, reason=reason)

    async def before(self, moment: HookMoment, change: HookedChange) -> HookAnswer:
        """Run a hook before something; return why that must wait. Takes at most its limit and GRACE."""
        return await self._run_hook(moment, environment(moment, change))

    def after(self, moment: HookMoment, change: HookedChange, result: str = "", reason: str = "") -> None:
        """Run a hook later, after those that were requested before."""
        try:
            self._send.send_nowait(_After(moment, change, environment(moment, change, result, reason)))
        except trio.WouldBlock:
            _log.error("a hook is not run, because too many wait", hook=moment.value)

    def changed(self) -> Callable[[], Awaitable[None]]:
        """Return a function that waits until files of hooks may have changed since this call."""
        return self._changed.next.wait

    async def _check_after_changes(self) -> None:
        while True:
            changed = self._changed.next
            self.problems = await self._run(partial(check, self._folder))
            await changed.wait()

    def _notice(self) -> None:
        self.revision += 1
        self._changed.announce()

    def _not_watched(self, path: Path | None, error: OSError) -> None:
        _log.warning("changes of hooks cannot be noticed", path=str(path or self._folder), error=error.strerror)

    async def _run_hook(self, moment: HookMoment, variables: Mapping[str, str]) -> HookAnswer:
        try:
            path: Path | None = await self._run(partial(find, self._folder, moment))
        except ConfigError as error:
            _log.error("a hook cannot be run", problem=str(error))
            return HookAnswer(True, f"the hook {moment.value} is not run: {error}")
        if path is None:
            return HookAnswer(False)
        _log.info("a hook runs", hook=moment.value, program=variables["MACHINE_PROGRAM"])
        output = _Output(moment)
        status = None
        try:
            with trio.move_on_after(LIMITS[moment]):
                with ungrouped(OSError):
                    status = await _execute(path, variables, output)
        except OSError as error:
            return HookAnswer(True, f"the hook {moment.value} cannot be run: {error.strerror}")
        finally:
            output.end()
        return HookAnswer(True, too_slow(moment) if status is None else ended(moment, status, output.last))


class _Output:
    """Lines that a hook writes: the first ones are logged, the last one is kept."""

    def __init__(self, moment: HookMoment) -> None:
        self.last = ""
        self._moment, self._rest, self._lines = moment, b"", 0

    def add(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > MAX_LINE:
            lines, rest = [*lines, rest], b""
        self._rest = rest
        for line in lines:
            self._line(line)

    def end(self) -> None:
        self._line(self._rest)
        self._rest = b""
        if self._lines > MAX_LINES:
            _log.info("further lines of a hook are not logged", hook=self._moment.value, lines=self._lines - MAX_LINES)

    def _line(self, line: bytes) -> None:
        if not (text := shown(line)):
            return
        self.last = text
        self._lines += 1
        if self._lines <= MAX_LINES:
            _log.info("a hook writes", hook=self._moment.value, line=text)


async def _execute(path: Path, variables: Mapping[str, str], output: _Output) -> int:
    """Run a program and return its exit code, or minus the signal that ended it. Its process group ends, too."""
    from nursery_graph import process_group  # large, and not needed while the agent is idle

    async with process_group(
        [str(path)],
        grace=GRACE,
        daemons=True,  # a hook may start a service
        env=dict(variables),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as group:
        async with trio.open_nursery() as nursery:
            complete = trio.Event()

            async def read() -> None:
                assert group.process.stdout is not None
                async for data in group.process.stdout:
                    output.add(bytes(data))
                complete.set()

            nursery.start_soon(read)
            status = await group.wait()
            with trio.move_on_after(GRACE):  # what it has left running keeps the pipe open
                await complete.wait()
            nursery.cancel_scope.cancel()
    return status
