"""What every operating system must do with processes and all that they start. Real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import trio

from nursery_graph.process import ProcessFailed, process_group, supervise

LIMIT = 60.0  # seconds; an interpreter starts slowly on Wine
CHILD = "import sys, time; print('child', flush=True); time.sleep(600)"
PARENT = (
    f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {CHILD!r}]); "
    "print('parent', flush=True); time.sleep(600)"
)


async def lines_of(stream: trio.abc.ReceiveStream, count: int) -> list[str]:
    data = b""
    while data.count(b"\n") < count:
        part = await stream.receive_some()
        if not part:
            break
        data += part
    return sorted(data.decode().split())


async def test_the_exit_status_is_returned() -> None:
    with trio.fail_after(LIMIT):
        async with process_group([sys.executable, "-c", "raise SystemExit(5)"], stdin=subprocess.DEVNULL) as group:
            assert await group.wait() == 5
            assert await group.wait() == 5


async def test_leaving_the_block_ends_children_of_children() -> None:
    with trio.fail_after(LIMIT):
        command = [sys.executable, "-c", PARENT]
        async with process_group(command, grace=0.1, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as group:
            output = group.process.stdout
            assert output is not None
            assert await lines_of(output, 2) == ["child", "parent"]
            await group.strike()
            assert await output.receive_some() == b"", "both ends of the pipe are closed only if both have ended"
            assert await group.wait() != 0


async def test_a_group_that_has_ended_by_itself_is_left_at_once() -> None:
    with trio.fail_after(LIMIT):
        async with process_group([sys.executable, "-c", ""], grace=600, stdin=subprocess.DEVNULL) as group:
            await group.ended()


async def test_cancelling_ends_the_processes() -> None:
    with trio.fail_after(LIMIT), trio.CancelScope() as scope:
        async with process_group(
            [sys.executable, "-c", PARENT], grace=0.1, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ) as group:
            assert group.process.stdout is not None
            await lines_of(group.process.stdout, 2)
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught


async def test_a_supervised_process_that_ends_is_an_error() -> None:
    with trio.fail_after(LIMIT), pytest.raises(ProcessFailed, match="with status 3"):
        await supervise([sys.executable, "-c", "raise SystemExit(3)"], stdin=subprocess.DEVNULL)


async def test_a_program_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"."):
        async with process_group([str(tmp_path / "missing.exe")]):
            pass


async def test_several_groups_run_at_once() -> None:
    async def run(status: int) -> None:
        async with process_group(
            [sys.executable, "-c", f"raise SystemExit({status})"], stdin=subprocess.DEVNULL
        ) as group:
            assert await group.wait() == status

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            for status in range(1, 6):
                nursery.start_soon(run, status)
