"""Child processes that are ended, with everything they started, when a block is left. Linux 5.3 or newer."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import trio

GRACE: Final = 10.0  # seconds between SIGTERM and SIGKILL


class ProcessFailed(Exception):
    """A supervised process ended by itself. `returncode` is negative if a signal ended it."""

    def __init__(self, command: Sequence[str], returncode: int) -> None:
        result = f"by signal {-returncode}" if returncode < 0 else f"with status {returncode}"
        super().__init__(f"{command[0]} ended {result}")
        self.returncode = returncode


class ProcessGroup:
    """A process and those of its descendants that are in its process group, or with `session` in its session.

    Use `process` for its pipes only. Wait for its end with `wait` of this class: Process.wait would release the process
    id, by which the group is signalled.
    """

    def __init__(self, command: Sequence[str], process: trio.Process, *, session: bool = False) -> None:
        self._session = session
        self.process = process
        self.command = command
        self.pid = process.pid  # the id of the first process and of the group

    async def wait(self) -> int:
        """Wait for the first process to end; return its exit status, or minus the signal that ended it."""
        await _ended(self.pid)
        # Does not block, because the process has ended. WNOWAIT keeps the id reserved until the group has ended, so
        # that no signal can reach an unrelated process.
        result = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222
        assert result is not None
        return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the group, ignoring those that have ended or changed their user."""
        if self._session:
            for member in self._members():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(member, number)
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def ended(self) -> None:
        """Wait until no process of the group runs."""
        while members := self._members():
            await _ended(members[0])

    def _members(self) -> list[int]:
        return _members(self.pid, session=self._session)


@asynccontextmanager
async def process_group(
    command: Sequence[str], *, grace: float = GRACE, session: bool = False, **options: Any
) -> AsyncIterator[ProcessGroup]:
    """Start a process in a session and process group of its own; end the whole group at the end of the block.

    With `session`, end all groups of the session, such as the jobs of an interactive shell.

    However the block is left, its processes receive SIGTERM, after `grace` seconds SIGKILL, and the block ends when no
    process runs any more, even if cancelled. A process that leaves its group (a daemon) is not ended. `options` are
    those of `trio.lowlevel.open_process`; raises OSError if the command cannot be started.
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
    while True:  # a process may start another one before it is signalled: repeat until none is left
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
    """Run a process as a node until cancelled; then end its group as `process_group` does.

    The node is ready when `ready(group)` has returned, and its value is the result; without `ready`, as soon as the
    process was started, with the ProcessGroup as value. Raises ProcessFailed when the process ends by itself, before or
    after the node is ready.

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
    """Wait for the end of a process, which need not be a child; return at once if it does not exist."""
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
    """Return the ids of the running processes of a process group or session."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_bytes()
            except OSError:  # it has just ended
                continue
            # proc(5): pid (name) state parent group session ...; the name may contain any character, even parentheses
            state, _parent, its_group, its_session = status.rpartition(b")")[2].split(None, 4)[:4]
            if int(its_session if session else its_group) == leader and state not in (b"Z", b"X"):
                members.append(int(entry.name))
    return members
