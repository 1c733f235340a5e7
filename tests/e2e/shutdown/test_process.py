"""Nodes that are processes: from SIGTERM to SIGKILL, the whole group, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio

from nursery_graph import Graph, Node, ProcessFailed, ProcessGroup, State, process_group, supervise

pytestmark = pytest.mark.slow

# Prints its process id, and that of a child that it starts; `deaf` ignores SIGTERM in both.
SCRIPT = """
import os, signal, subprocess, sys, time
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
code = "import time; print(flush=True); time.sleep(100)"
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
child.stdout.readline()
print(os.getpid(), child.pid, flush=True)
if sys.argv[1] == "quits":
    sys.exit(7)
time.sleep(100)
"""


def command(kind: str) -> list[str]:
    return [sys.executable, "-c", SCRIPT, kind]


async def said(group: ProcessGroup) -> list[int]:
    """Return the process ids that it printed."""
    assert group.process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        line += await group.process.stdout.receive_some()
    return [int(word) for word in line.split()]


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != b"Z"


async def test_a_process_group_ends_on_sigterm() -> None:
    with trio.fail_after(30):
        async with process_group(command("polite"), grace=25, stdout=subprocess.PIPE) as group:
            pids = await said(group)
            assert all(runs(pid) for pid in pids)
            begin = trio.current_time()
        assert trio.current_time() - begin < 20
    assert not any(runs(pid) for pid in pids)
    assert group.process.returncode == -signal.SIGTERM


async def test_a_process_group_that_ignores_sigterm_is_killed_even_when_cancelled() -> None:
    pids: list[int] = []
    begin = 0.0
    with trio.fail_after(30), trio.CancelScope() as scope:
        async with process_group(command("deaf"), grace=0.3, stdout=subprocess.PIPE) as group:
            pids = await said(group)
            begin = trio.current_time()
            scope.cancel()
    assert trio.current_time() - begin >= 0.3
    assert len(pids) == 2
    assert not any(runs(pid) for pid in pids)
    assert group.process.returncode == -signal.SIGKILL


DAEMON = """
import os, subprocess, sys, time
# Leaves the group and the session; its parent ends, so that it is a child of init.
code = "import os, time; os.setsid(); os.write(1, b'%d' % os.getpid()); time.sleep(100)"
shell = [sys.executable, "-c", "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]])", code]
reader, writer = os.pipe()
subprocess.run(shell, stdout=writer, env={"PATH": os.environ["PATH"]} if sys.argv[1] == "cleared" else None)
pid = int(os.read(reader, 20))
print(os.getpid(), pid, flush=True)
if sys.argv[1] == "quits":
    sys.exit(7)
time.sleep(100)
"""


@pytest.mark.parametrize("kind", ["stays", "quits"])
async def test_daemons_of_a_process_are_ended_too(kind: str) -> None:
    with trio.fail_after(30):
        async with process_group([sys.executable, "-c", DAEMON, kind], grace=25, stdout=subprocess.PIPE) as group:
            pids = await said(group)
            if kind == "quits":
                assert await group.wait() == 7
            assert runs(pids[1])
        assert not any(runs(pid) for pid in pids)


async def test_children_in_another_session_are_ended_whatever_their_environment() -> None:
    code = (
        "import os, subprocess, sys, time; child = subprocess.Popen(['sleep', '100'], start_new_session=True, env={}); "
        "print(os.getpid(), child.pid, flush=True); time.sleep(100)"
    )
    with trio.fail_after(30):
        async with process_group([sys.executable, "-c", code], grace=25, stdout=subprocess.PIPE) as group:
            pids = await said(group)
        assert not any(runs(pid) for pid in pids)


async def test_daemons_may_be_meant_to_go_on() -> None:
    command = [sys.executable, "-c", DAEMON, "stays"]
    async with process_group(command, daemons=True, stdout=subprocess.PIPE) as group:
        _, daemon = await said(group)
    try:
        assert runs(daemon)
    finally:
        os.kill(daemon, signal.SIGKILL)


async def test_only_own_descendants_are_ended() -> None:
    async with (
        process_group(["sleep", "100"]) as other,
        process_group([sys.executable, "-c", DAEMON, "stays"], stdout=subprocess.PIPE) as group,
    ):
        pids = await said(group)
        assert {member.pid for member in await group._members()} == set(pids)
        assert [member.pid for member in await other._members()] == [other.pid]


class Reads(trio.abc.Instrument):
    """Counts the files that are read in one step of a task."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = self.all = self._step = 0
        read = Path.read_bytes

        def counted(path: Path) -> bytes:
            self._step += 1
            self.all += 1
            self.most = max(self.most, self._step)
            return read(path)

        monkeypatch.setattr(Path, "read_bytes", counted)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._step = 0


@pytest.mark.parametrize("options", [{}, {"session": True}, {"daemons": True}])
async def test_processes_are_looked_at_in_short_steps(
    options: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nursery_graph.process.SLICE", 4, raising=False)
    reads = Reads(monkeypatch)
    async with AsyncExitStack() as stack:
        for _ in range(20):
            await stack.enter_async_context(process_group(["sleep", "100"]))
        trio.lowlevel.add_instrument(reads)
        with trio.fail_after(30):
            async with process_group(command("deaf"), grace=0.1, stdout=subprocess.PIPE, **options) as group:
                await said(group)
        trio.lowlevel.remove_instrument(reads)
        assert reads.all >= 3 * 20  # before SIGTERM, while it ends, and before SIGKILL
        assert reads.most <= 4


async def test_orphans_of_a_process_are_ended_too() -> None:
    with trio.fail_after(30):
        async with process_group(command("quits"), grace=25, stdout=subprocess.PIPE) as group:
            pids = await said(group)
            assert await group.wait() == 7
            assert await group.wait() == 7
            assert not runs(pids[0])
            assert runs(pids[1])
    assert not any(runs(pid) for pid in pids)


async def test_a_process_node_stops_before_its_dependencies_and_may_crash() -> None:
    order: list[str] = []

    async def bus(deps: object, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            order.append(f"bus ends, module runs: {any(map(runs, pids))}")

    async def module(deps: object, *, task_status: trio.TaskStatus[list[int]]) -> None:
        await supervise(command("deaf"), grace=0.2, ready=said, task_status=task_status, stdout=subprocess.PIPE)

    pids: list[int] = []
    graph = Graph()
    graph.subscribe(lambda e: order.append(e.reason) if e.after is State.UNHEALTHY else None)
    graph.apply([Node("bus", bus), Node("module", module, {"bus"})])
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            await nursery.start(graph.run)
            await graph.settled()
            first = graph.value("module")
            os.kill(first[0], signal.SIGKILL)
            async for snapshot in graph.changes():
                if snapshot["module"].runs == 2 and snapshot["module"].state is State.READY:
                    break
            pids = graph.value("module")
            assert not any(map(runs, first))
            assert all(map(runs, pids))
            graph.stop()
    assert "ended by signal 9" in order[0]
    assert order[-1] == "bus ends, module runs: False"


async def test_a_process_that_ends_before_it_is_ready_is_a_failure() -> None:
    async def never(group: ProcessGroup) -> None:
        await trio.sleep_forever()

    with trio.fail_after(30), pytest.raises(ProcessFailed, match="with status 3"):
        await supervise([sys.executable, "-c", "raise SystemExit(3)"], ready=never)


async def test_a_missing_command_is_an_oserror() -> None:
    with pytest.raises(FileNotFoundError):
        async with process_group(["/nonexistent/command"]):
            raise AssertionError("unreachable")
