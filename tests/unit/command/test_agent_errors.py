"""The exit codes of `machine agent` for errors: that no agent runs, and those with which an agent answers."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from agent.console.server import serve
from schema.errors import ErrorKind, MachineError

PROGRAM = "from command.agent.group import agent; agent()"


async def unavailable(arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
    raise MachineError("systemctl does not answer", kind=ErrorKind.UNAVAILABLE, remedy="look at `systemctl status`")
    yield


async def restart(folder: Path) -> tuple[int, str]:
    """Run `machine agent restart`; return its exit code and what it says on standard error."""
    words = ["--root", str(folder), "--run", str(folder), "restart"]
    with trio.fail_after(30):
        done = await trio.run_process([sys.executable, "-c", PROGRAM, *words], capture_stderr=True, check=False)
    return done.returncode, done.stderr.decode()


async def test_an_answer_that_something_is_unavailable_does_not_mean_that_no_agent_runs(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, tmp_path / "agent.sock", {"restart": unavailable})
        code, said = await restart(tmp_path)
        nursery.cancel_scope.cancel()
    assert code == 1
    assert "systemctl does not answer" in said
    assert "systemctl status" in said


@pytest.mark.parametrize("left", [False, True])
async def test_no_agent_is_exit_code_3(tmp_path: Path, left: bool) -> None:
    if left:  # the socket of an agent that was killed
        with trio.socket.socket(trio.socket.AF_UNIX) as socket:
            await socket.bind(str(tmp_path / "agent.sock"))
    code, said = await restart(tmp_path)
    assert code == 3
    assert "machine-agent does not answer" in said
