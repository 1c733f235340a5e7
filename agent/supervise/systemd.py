"""Runs machine-server as a unit of systemd, which restarts it and which the agent only controls and observes.

Changes are noticed without polling: the unit writes a file after each start and end (ExecStartPost=, ExecStopPost=),
which inotify reports. This works with every version of systemd and of control groups, needs no D-Bus library and no
process that waits, and keeps working while the agent is restarted. The properties are read then with `systemctl show`.
The pause before a restart is set by the agent: see `agent.supervise.pause`.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import structlog
import trio

from agent.supervise.health import STABLE
from agent.supervise.pause import RestartPause
from agent.supervise.processes import IDENTITY, variables
from agent.supervise.state import KILL_TIME, STOP_TIME, Ended, ServerExit, ServerProcess, Started, died
from agent.supervise.units import SERVER_UNIT, ServerFiles, environment_file
from schema import ErrorKind, MachineError
from support import ChangeSignal, RunBlocking
from support.files import follow_files, replace_file

COMMAND_LIMIT: Final = 30.0  # seconds for systemctl; a stop may take STOP_TIME and more
_PROPERTIES: Final = (
    "ActiveState", "MainPID", "ExecMainPID", "ExecMainStartTimestampMonotonic", "ExecMainExitTimestampMonotonic",
    "ExecMainCode", "ExecMainStatus", "Result",
)  # fmt: skip
_RUNNING: Final = ("active", "activating", "reloading", "deactivating")
_EXITED: Final = "1"  # CLD_EXITED; killed and dumped are 2 and 3

Systemctl = Callable[..., Awaitable[str]]
_log = structlog.get_logger("agent.supervise")


class ServerUnit(NamedTuple):
    """The state of the unit; times are seconds of the monotonic clock, 0 if that has not happened."""

    pid: int  # of the main process, 0 if none runs
    last_pid: int
    began: float
    ended: float
    reason: str  # why the last main process ended
    stopped: bool = False  # it does not run, and systemd will not restart it


def parse(text: str) -> ServerUnit:
    """Return the state from the output of `systemctl show`. Values that are missing count as 0."""
    values = dict(line.partition("=")[::2] for line in text.splitlines())

    def number(name: str) -> int:
        value = values.get(name, "")
        return int(value) if value.isdecimal() else 0

    status = number("ExecMainStatus")
    result = values.get("Result", "")
    reason = died(status if values.get("ExecMainCode") == _EXITED else -status, out_of_memory=result == "oom-kill")
    if result in ("timeout", "watchdog", "resources", "exec-condition"):
        reason = f"{reason} ({result})"
    return ServerUnit(
        number("MainPID") if values.get("ActiveState") in _RUNNING else 0,
        number("ExecMainPID"),
        number("ExecMainStartTimestampMonotonic") / 1e6,
        number("ExecMainExitTimestampMonotonic") / 1e6,
        reason,
        values.get("ActiveState") in ("inactive", "failed"),
    )


async def systemctl(*arguments: str, limit: float = COMMAND_LIMIT) -> str:
    """Run systemctl and return its output. Raises MachineError if it fails or takes longer than `limit` seconds."""
    try:
        with trio.fail_after(limit):
            done = await trio.run_process(
                ["systemctl", "--no-pager", "--no-ask-password", *arguments],
                capture_stdout=True, capture_stderr=True, check=False, env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip
    except trio.TooSlowError:
        raise _failure(arguments, f"has not ended within {limit:g} s") from None
    except OSError as error:
        raise _failure(arguments, f"cannot be run: {error.strerror}") from None
    if done.returncode:
        raise _failure(arguments, done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}")
    return done.stdout.decode(errors="replace")


def _failure(arguments: tuple[str, ...], reason: str) -> MachineError:
    return MachineError(
        f"systemctl {' '.join(arguments[:1])} {SERVER_UNIT}: {reason}",
        kind=ErrorKind.UNAVAILABLE,
        remedy=f"look at `systemctl status {SERVER_UNIT}`",
    )


class SystemdBackend:
    """Controls the unit of machine-server. `drop_in` is the file with the pause before its next restart; `run` calls
    blocking functions in a worker.
    """

    def __init__(self, files: ServerFiles, drop_in: Path, run: RunBlocking, control: Systemctl = systemctl) -> None:
        self._files, self._run, self._control = files, run, control
        self._pause = RestartPause(drop_in, run, control)
        self._last: ServerUnit | None = None  # as it was seen last
        self._stable_at = 0.0  # when its process has run for STABLE, by Trio's clock
        self._stopped = 0  # id of the process that was stopped on request
        self._changed = ChangeSignal()

    async def configure(self, environment: Mapping[str, str], *, disabled: bool) -> None:
        """Store the variables of the next start, and whether it may be started at boot without the agent."""
        content = environment_file(environment).encode()
        await self._run(partial(_store, self._files.environment, content))
        await self._run(partial(_flag, self._files.disabled, disabled))

    async def wait_at_boot(self, waits: bool) -> None:
        """Store whether the next boot starts machine-server only after `allow` (setting wait_for_update_check)."""
        await self._run(partial(_flag, self._files.waits, waits))

    async def allow(self) -> None:
        """Allow starts until the next boot."""
        await self._run(partial(_flag, self._files.allowed, True))

    async def start(self) -> None:
        """Start it unless it runs."""
        await self._control("start", "--no-block", SERVER_UNIT)

    async def stop(self) -> None:
        """End it with SIGTERM, after STOP_TIME with SIGKILL, and keep it stopped until `start`.

        The next crash counts as the first one.
        """
        self._stopped = self._last.pid if self._last is not None else 0
        await self._control("stop", SERVER_UNIT, limit=STOP_TIME + KILL_TIME + COMMAND_LIMIT)
        await self._pause.reset()
        self._notice()

    async def kill(self) -> None:
        """Kill it and its children; it is then restarted."""
        await self._control("kill", f"--signal={signal.SIGKILL.name}", SERVER_UNIT)

    async def run(self, started: Started, ended: Ended, *, task_status: trio.TaskStatus[None]) -> None:
        """Report starts and ends until cancelled. While systemctl fails, the state that was seen last remains."""
        self._last = None  # a process that runs is reported, also if it was before
        await self._pause.load()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow_files, [self._files.event], self._notice, _not_watched)
            ready = False
            while True:
                changed = self._changed.next
                try:
                    unit = parse(await self._control("show", SERVER_UNIT, f"--property={','.join(_PROPERTIES)}"))
                except MachineError as error:
                    _log.warning("the state of machine-server is not known", error=str(error))
                else:
                    last: ServerUnit | None = self._last
                    self._last = unit
                    if last is None or unit.began != last.began:
                        self._stable_at = trio.current_time() + STABLE - (time.monotonic() - unit.began)
                    await self._report(last, unit, started, ended)
                    if unit.stopped:
                        await self._pause.reset()
                if not ready:
                    ready = True
                    task_status.started()
                if self._until_stable() == 0:
                    await self._pause.reset()
                with trio.move_on_after(self._until_stable()):
                    await changed.wait()

    def _until_stable(self) -> float:
        """Return the seconds until earlier crashes are forgotten, because the process has run for so long."""
        if self._last is None or not self._last.pid or not self._pause.crashes:
            return math.inf
        return max(0.0, self._stable_at - trio.current_time())

    async def _report(self, last: ServerUnit | None, unit: ServerUnit, started: Started, ended: Ended) -> None:
        if last is not None and last.pid and (unit.pid, unit.began) != (last.pid, last.began):
            observed = unit.last_pid == last.pid and unit.ended >= last.began
            at = unit.ended if observed else time.monotonic()
            reason = unit.reason if observed else "it ended while its end could not be observed"
            await self._end(ended, last._replace(ended=at, reason=reason), crashed=last.pid != self._stopped)
        elif last is not None and unit.began > last.began and unit.ended >= unit.began and not unit.stopped:
            await self._end(ended, unit, crashed=True)  # it ran for a moment only, and was never seen running
        if unit.pid and (last is None or (unit.pid, unit.began) != (last.pid, last.began)):
            facts = await self._run(partial(variables, unit.pid))
            began = trio.current_time() - (time.monotonic() - unit.began)
            started(ServerProcess(unit.pid, began, facts.get("MACHINE_RELEASE", ""), facts.get(IDENTITY, "")))

    async def _end(self, ended: Ended, unit: ServerUnit, *, crashed: bool) -> None:
        ran = max(0.0, unit.ended - unit.began)
        ended(ServerExit(_wall(unit.ended), unit.reason, ran))
        if crashed:
            await self._pause.crashed(ran)

    def _notice(self) -> None:
        self._changed.announce()


def _wall(monotonic: float) -> float:
    return time.time() - (time.monotonic() - monotonic)


def _not_watched(path: Path | None, error: OSError) -> None:
    _log.error("changes of machine-server cannot be noticed", path=str(path or ""), error=error.strerror)


def _store(path: Path, content: bytes) -> None:
    """Replace a file with secrets if it differs."""
    try:
        if path.read_bytes() == content:
            return
    except FileNotFoundError:
        pass
    replace_file(path, content)


def _flag(path: Path, exists: bool) -> None:
    if not exists:
        path.unlink(missing_ok=True)
    elif not path.exists():
        replace_file(path, b"")


def has_systemd() -> bool:
    """Return whether systemd is the init process, and this process may control it. Blocks briefly."""
    return Path("/run/systemd/system").is_dir() and os.geteuid() == 0
