"""Runs machine-server as a child process through the launcher: in containers, without systemd, and without root."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Final

import structlog
import trio

from agent.supervise.health import crashes_in_a_row, restart_delay
from agent.supervise.processes import IDENTITY, oom_kills, variables
from agent.supervise.state import KILL_TIME, STOP_TIME, Ended, ServerExit, ServerProcess, Started, died
from nursery_graph import ProcessGroup, process_group
from support import ChangeSignal, Worker, ungrouped

MAX_LINE: Final = 4096  # bytes of a line on standard error that are logged
_NOT_INHERITED: Final = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "MACHINE_READY_FD")
_log = structlog.get_logger("agent.supervise")


class ChildBackend:
    """Runs `command`, which begins with the launcher. Its standard output is that of the agent; lines on standard
    error become log entries.

    The child is stopped when `run` is cancelled. If the agent is killed, the child runs on, and the next agent ends it:
    `leftovers` are the ids of such processes.
    """

    def __init__(
        self, command: Sequence[str], worker: Worker, *, leftovers: Sequence[int] = (), stop_time: float = STOP_TIME
    ) -> None:
        self._command = list(command)
        self._worker = worker
        self._leftovers = leftovers
        self._stop_time = stop_time
        self._environment: dict[str, str] = {}
        self._wake = ChangeSignal()
        self._should_run = False
        self._group: ProcessGroup | None = None
        self._idle = trio.Event()  # set while no process runs
        self._idle.set()

    async def configure(self, environment: Mapping[str, str], *, disabled: bool) -> None:
        """Store the variables of the next start, and whether it may be started at boot without the agent.

        Nothing is started at boot without the agent.
        """
        await trio.lowlevel.checkpoint()
        self._environment = dict(environment)

    async def start(self) -> None:
        """Start it unless it runs. A start ends the delay after a crash."""
        await trio.lowlevel.checkpoint()
        self._should_run = True
        self._wake.announce()

    async def stop(self) -> None:
        """End it with SIGTERM, after STOP_TIME with SIGKILL, and keep it stopped until `start`."""
        self._should_run = False
        self._wake.announce()
        if self._group is not None:
            await self._end(self._group)
        await self._idle.wait()

    async def kill(self) -> None:
        """Kill it and its children; it is then restarted."""
        await trio.lowlevel.checkpoint()
        if self._group is not None:
            await self._group.signal(signal.SIGKILL)

    async def run(self, started: Started, ended: Ended, *, task_status: trio.TaskStatus[None]) -> None:
        """Report starts and ends until cancelled."""
        leftovers, self._leftovers = self._leftovers, ()  # later, another program may have such an id
        for pid in leftovers:
            await self._end_leftover(pid)
        task_status.started()
        crashes = 0
        while True:
            wake = self._wake.next
            if not self._is_enabled():
                crashes = 0
                await wake.wait()
                continue
            with trio.move_on_after(restart_delay(crashes)):
                await wake.wait()
                crashes = 0
            if self._is_enabled():
                self._idle = trio.Event()
                try:
                    end = await self._run_once(started)
                    ended(end)
                finally:
                    self._idle.set()
                crashes = crashes_in_a_row(crashes, end.ran)

    def _is_enabled(self) -> bool:
        return self._should_run

    async def _run_once(self, started: Started) -> ServerExit:
        inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
        begun = trio.current_time()
        memory = await self._worker.run(oom_kills)
        try:
            async with process_group(
                self._command,
                grace=KILL_TIME,
                env={**inherited, **self._environment},
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            ) as group:
                self._group = group
                try:
                    with ungrouped(OSError):
                        status = await self._until_ended(group, begun, started)
                finally:
                    self._group = None
        except OSError as error:
            return ServerExit(time.time(), f"{self._command[0]} cannot be executed: {error.strerror}", 0.0)
        out_of_memory = status == -signal.SIGKILL and await self._worker.run(oom_kills) > memory
        return ServerExit(time.time(), died(status, out_of_memory=out_of_memory), trio.current_time() - begun)

    async def _until_ended(self, group: ProcessGroup, begun: float, started: Started) -> int:
        async with trio.open_nursery() as nursery:
            assert group.process.stderr is not None
            nursery.start_soon(_log_lines, group.process.stderr)
            try:
                # The launcher has the same process id; what it sets for the program appears in /proc later.
                started(ServerProcess(group.pid, begun, environment=self._environment.get(IDENTITY, "")))
                status = await group.wait()
            except trio.Cancelled:
                with trio.CancelScope(shield=True):
                    await self._end(group)
                raise
            nursery.cancel_scope.cancel()
        return status

    async def _end(self, group: ProcessGroup) -> None:
        """End the first process, which ends its own children; kill all of them if that takes too long."""
        try:
            os.kill(group.pid, signal.SIGTERM)
        except ProcessLookupError:
            return
        with trio.move_on_after(self._stop_time) as scope:
            await group.wait()
        if scope.cancelled_caught:
            await group.signal(signal.SIGKILL)

    async def _end_leftover(self, pid: int) -> None:
        """End the server of an agent that was killed: it is not a child of this one, and its output is lost."""
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return
        try:
            # The descriptor is opened first, so that the process cannot be replaced by another one with its id.
            facts = await self._worker.run(lambda: variables(pid))
            if not facts.get(IDENTITY):
                return
            _log.warning("ending the machine-server of an earlier agent", pid=pid)
            for number, limit in ((signal.SIGTERM, self._stop_time), (signal.SIGKILL, KILL_TIME)):
                signal.pidfd_send_signal(descriptor, number)
                with trio.move_on_after(limit):
                    await trio.lowlevel.wait_readable(descriptor)
                    return
        except ProcessLookupError:
            return
        finally:
            trio.lowlevel.notify_closing(descriptor)
            os.close(descriptor)


async def _log_lines(pipe: trio.abc.ReceiveStream) -> None:
    rest = b""
    async for data in pipe:
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > MAX_LINE:
            lines, rest = [*lines, rest], b""
        for line in lines:
            if line.strip():
                _log.warning("machine-server wrote to standard error", line=line[:MAX_LINE].decode(errors="replace"))
