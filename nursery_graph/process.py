"""Child processes that are ended, with everything they started, when a block is left. On Linux, 5.3 or newer."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

GRACE: Final = 10.0  # seconds between the request to end and the end


class ProcessFailed(Exception):
    """A supervised process ended by itself. `returncode` is negative if a signal ended it."""

    def __init__(self, command: Sequence[str], returncode: int) -> None:
        result = f"by signal {-returncode}" if returncode < 0 else f"with status {returncode}"
        super().__init__(f"{command[0]} ended {result}")
        self.returncode = returncode


if sys.platform == "win32":
    from nursery_graph.process_windows import JobProcesses, start_tree

    ProcessGroup = JobProcesses
else:
    from signal import SIGCONT, SIGKILL, SIGTERM, Signals

    SLICE: Final = 64  # processes of the computer that are looked at between two checkpoints: a thousand take 30 ms
    TREE: Final = "MACHINE_PROCESS_TREE"
    """Environment variable with a mark for each ProcessGroup that a process belongs to. Children inherit it."""

    class ProcessGroup:
        """A process and its process group, or with `session` its session, and with `mark` all its descendants.

        Descendants are recognized by their parents, and by `mark` in their environment if those have ended. A daemon
        that also clears its environment is not recognized.

        Use `process` for its pipes only. Wait for its end with `wait` of this class: Process.wait would release the
        process id, by which the group is signalled.
        """

        def __init__(
            self, command: Sequence[str], process: trio.Process, *, session: bool = False, mark: str = ""
        ) -> None:
            self._session = session
            self._mark = mark.encode()
            self._seen: set[tuple[int, int]] = set()  # id and start of all processes that belonged to it
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

        async def signal(self, number: Signals) -> list[_Process]:
            """Send a signal to all processes of the group, ignoring those that have ended or changed their user.

            Return those that were running before. If cancelled, the signal is not sent.
            """
            members = (
                await self._members()
            )  # before the first one ends, and its children become those of another process
            if not self._session:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, number)
            for member in members:
                if self._session or member.group != self.pid:
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(member.pid, number)
            return members

        async def resume(self) -> None:
            """Let all processes of the group run that were stopped: others would not handle SIGTERM."""
            await self.signal(SIGCONT)

        async def strike(self) -> None:
            """Send SIGKILL to all processes of the group, without waiting for their end."""
            await self.signal(SIGKILL)

        async def ended(self) -> None:
            """Wait until no process of the group runs."""
            while members := await self._members():
                await _all_ended(members)

        async def end(self, grace: float) -> None:
            """Send SIGTERM to all processes, SIGKILL after `grace` seconds, and wait until none runs."""
            await self.signal(SIGTERM)
            with trio.move_on_after(grace):
                await self.ended()
            await self.kill()

        async def kill(self) -> None:
            """Kill all processes of the group, and wait for their end."""
            # A process may start another one before it is killed: repeat until none is left.
            while killed := await self.signal(SIGKILL):
                await _all_ended(killed)

        async def _members(self) -> list[_Process]:
            """Return its running processes."""
            processes = await _running()
            if self._session:
                return [each for each in processes if each.session == self.pid and not each.ended]
            began = next((each.began for each in processes if each.pid == self.pid), 0)
            tree, members = {self.pid}, []
            # Parents before their children.
            for number, each in enumerate(sorted(processes, key=lambda each: each.began)):
                if number % SLICE == 0:
                    await trio.lowlevel.checkpoint()
                if each.group == self.pid or (self._mark and each.began >= began and self._descends(each, tree)):
                    tree.add(each.pid)
                    self._seen.add((each.pid, each.began))
                    if not each.ended:
                        members.append(each)
            return members

        def _descends(self, process: _Process, tree: set[int]) -> bool:
            """Return whether a process descends from one in `tree`, or is known to descend from one that has ended."""
            return process.parent in tree or (process.pid, process.began) in self._seen or self._marked(process.pid)

        def _marked(self, pid: int) -> bool:
            try:
                environment = Path("/proc", str(pid), "environ").read_bytes()
            except OSError:  # it has ended, or belongs to another user
                return False
            return self._mark in environment

    @asynccontextmanager
    async def start_tree(
        command: Sequence[str], *, session: bool, daemons: bool, options: dict[str, Any]
    ) -> AsyncIterator[ProcessGroup]:
        """Start a process in a session of its own. The caller ends it: see `process_group`. Raises OSError."""
        mark = "" if session or daemons else secrets.token_hex(16)
        if mark:
            environment = dict(os.environ if options.get("env") is None else options["env"])
            marks = [each for each in (os.environ.get(TREE), mark) if each]
            options["env"] = {**environment, TREE: ":".join(marks)}
        process = await trio.lowlevel.open_process(command, start_new_session=True, **options)
        yield ProcessGroup(command, process, session=session, mark=mark)

    async def _all_ended(processes: Iterable[_Process]) -> None:
        for process in processes:
            await _ended(process.pid)

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

    class _Process(NamedTuple):
        """A process of this computer, also one that has ended but was not waited for."""

        pid: int
        parent: int
        group: int
        session: int
        began: int  # clock ticks since the start of the computer
        ended: bool

    async def _running() -> list[_Process]:
        """Return all processes."""
        processes = []
        with os.scandir("/proc") as entries:
            for number, entry in enumerate(entries):
                if number % SLICE == 0:
                    await trio.lowlevel.checkpoint()
                if entry.name.isdigit() and (process := _looked_at(entry.name)) is not None:
                    processes.append(process)
        return processes

    def _looked_at(pid: str) -> _Process | None:
        try:
            status = Path("/proc", pid, "stat").read_bytes()
        except OSError:  # it has just ended
            return None
        # proc(5): pid (name) state parent group session ...; the name may contain any character, even parentheses
        state, parent, group, session, *rest = status.rpartition(b")")[2].split(None, 20)
        return _Process(int(pid), int(parent), int(group), int(session), int(rest[15]), state in (b"Z", b"X"))


@asynccontextmanager
async def process_group(
    command: Sequence[str], *, grace: float = GRACE, session: bool = False, daemons: bool = False, **options: Any
) -> AsyncIterator[ProcessGroup]:
    """Start a process in a session and process group of its own; end it and all its descendants after the block.

    With `session`, end all groups of the session, such as the jobs of an interactive shell, and with `daemons` only the
    process group: daemons, which have left it, go on.

    However the block is left, its processes receive SIGTERM, after `grace` seconds SIGKILL, and the block ends when no
    process runs any more, even if cancelled. `options` are those of `trio.lowlevel.open_process`; raises OSError if the
    command cannot be started.

    On Windows the processes are those of a Job Object: all descendants, whatever `session` and `daemons` say. They
    receive CTRL_BREAK, or end at once if they have no console. They also end if this process is killed.
    """
    async with start_tree(command, session=session, daemons=daemons, options=options) as group:
        try:
            yield group
        finally:
            with trio.CancelScope(shield=True):
                await group.end(grace)
                for pipe in (group.process.stdin, group.process.stdout, group.process.stderr):
                    if pipe is not None:
                        await pipe.aclose()
                await group.process.wait()


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
