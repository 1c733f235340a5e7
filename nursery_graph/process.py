"""A child process that is gone, with everything it started, when its block is left. Linux 5.3 or newer."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import trio

GRACE: Final = 10.0  # seconds between SIGTERM and SIGKILL; what systemd-like managers leave a small service


class ProcessFailed(Exception):
    """A supervised process ended by itself. `returncode` is negative if a signal ended it."""

    def __init__(self, command: Sequence[str], returncode: int) -> None:
        how = f"by signal {-returncode}" if returncode < 0 else f"with status {returncode}"
        super().__init__(f"{command[0]} ended {how}")
        self.returncode = returncode


class ProcessGroup:
    """A process and all its descendants that have not left its process group, or with `session` its session.

    `process` is for its pipes. Wait for its end with `wait` here: Process.wait would release the process id, and with
    it the name by which the group is signalled.
    """

    def __init__(self, command: Sequence[str], process: trio.Process, *, session: bool = False) -> None:
        self._session = session
        self.process = process
        self.command = command
        self.pid = process.pid  # of the first process, and of the group

    async def wait(self) -> int:
        """Return when the first process has ended: its status, or minus the signal that ended it."""
        await _ended(self.pid)
        # Returns at once, it has ended. WNOWAIT: the id stays taken until the group is gone: no signal hits a stranger.
        result = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222
        assert result is not None
        return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the group; those that have ended or changed their user are no error."""
        if self._session:
            for member in self._members():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(member, number)
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def ended(self) -> None:
        """Return when no process of the group runs."""
        while members := self._members():
            await _ended(members[0])

    def _members(self) -> list[int]:
        return _members(self.pid, session=self._session)


@asynccontextmanager
async def process_group(
    command: Sequence[str], *, grace: float = GRACE, session: bool = False, **options: Any
) -> AsyncIterator[ProcessGroup]:
    """Start a process in a session and process group of its own; at the end of the block end the whole group.

    With `session` all groups of the session end, such as the jobs of an interactive shell, each a group of its own.

    However the block is left, all that runs is sent SIGTERM, after `grace` seconds SIGKILL, and the block is left when
    nothing runs any more; cancellation does not hurry that. A process that leaves its group (a daemon) escapes.
    `options` are those of `trio.lowlevel.open_process`; raises OSError if the command cannot be started.
    """
    process = await trio.lowlevel.open_process(command, start_new_session=True, **options)
    group = ProcessGroup(command, process, session=session)
    try:
        yield group
    finally:
        with trio.CancelScope(shield=True):
            group.signal(signal.SIGTERM)
            with trio.move_on_after(grace):
                await group.ended()
            await _kill(group)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    await pipe.aclose()
            await process.wait()


async def _kill(group: ProcessGroup) -> None:
    while True:  # a session is signalled one by one: what one of it has started meanwhile is caught the next time
        group.signal(signal.SIGKILL)
        members = group._members()
        if not members:
            return
        await _ended(members[0])


async def supervise(
    command: Sequence[str],
    *,
    grace: float = GRACE,
    ready: Callable[[ProcessGroup], Awaitable[Any]] | None = None,
    task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED,
    **options: Any,
) -> None:
    """Run a process as the whole life of a node, until cancelled; then end its group as `process_group` does.

    It is ready when `ready(group)` has returned, whose result becomes the node's value; without `ready`, as soon as it
    has been started, with the ProcessGroup as value. Raises ProcessFailed when the process ends by itself, before or
    after.

    `grace` should be well below the node's stop_timeout. In a node::

        async def camera(deps, *, task_status):
            await supervise(["camera-server", "--port", "0"], ready=handshake, task_status=task_status)
    """
    async with process_group(command, grace=grace, **options) as group:
        failure: ProcessFailed | None = None
        async with trio.open_nursery() as nursery:

            async def announce() -> None:
                task_status.started(group if ready is None else await ready(group))

            nursery.start_soon(announce)
            failure = ProcessFailed(command, await group.wait())
            nursery.cancel_scope.cancel()
        raise failure


async def _ended(pid: int) -> None:
    """Return when the process has ended, whoever its parent is; at once if there is none."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        await trio.lowlevel.checkpoint()
        return
    try:
        await trio.lowlevel.wait_readable(descriptor)
    finally:
        trio.lowlevel.notify_closing(descriptor)
        os.close(descriptor)


def _members(leader: int, *, session: bool) -> list[int]:
    """Processes of a process group, or of a session, that have not ended."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_bytes()
            except OSError:  # it has just ended
                continue
            # proc(5): pid (name) state parent group session ...; the name may hold anything, also parentheses
            state, _parent, its_group, its_session = status.rpartition(b")")[2].split(None, 4)[:4]
            if int(its_session if session else its_group) == leader and state not in (b"Z", b"X"):
                members.append(int(entry.name))
    return members
