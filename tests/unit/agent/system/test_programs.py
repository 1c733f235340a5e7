"""Programs of the system as real processes; systemd-run is a script."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

import agent.system.programs as module
from agent.system.programs import EXISTS, SystemPrograms
from schema.errors import ErrorKind, MachineError
from support.worker import Worker

SYSTEMD_RUN = r"""#!/bin/sh
echo "$*" >> "$STUBS/calls"
[ ! -e "$STUBS/busy" ] || { cat "$STUBS/busy"; exit 1; }
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


@pytest.fixture
async def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SystemPrograms]:
    stub = tmp_path / "systemd-run"
    stub.write_text(SYSTEMD_RUN)
    stub.chmod(0o755)
    monkeypatch.setenv("STUBS", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    worker = Worker("tests")
    async with worker.opened():
        yield SystemPrograms(tmp_path / "log", worker)


async def test_status_output_and_errors(programs: SystemPrograms) -> None:
    done = await programs.run(("sh", "-c", "echo out; echo E: wrong >&2; exit 3"))
    assert done == (3, "out\n", "E: wrong\n")
    assert done.message == "E: wrong"


async def test_the_language_is_fixed_and_nothing_is_asked(programs: SystemPrograms) -> None:
    done = await programs.run(("sh", "-c", 'echo "$LC_ALL $DEBIAN_FRONTEND"; cat'))
    assert done.output == "C.UTF-8 noninteractive\n"


async def test_a_program_that_hangs_is_killed_with_its_children(
    programs: SystemPrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KILL_TIME", 0.1)
    with pytest.raises(MachineError, match=r"did not end within 0\.2 s") as caught:
        await programs.run(("sh", "-c", "trap '' TERM; sleep 1000 & wait; wait"), limit=0.2)
    assert caught.value.kind is ErrorKind.TIMEOUT


async def test_a_program_that_writes_without_end_fails_and_needs_no_memory(programs: SystemPrograms) -> None:
    with pytest.raises(MachineError, match="has written more than 1024 KiB"):
        await programs.run(("sh", "-c", "head -c 3000000 /dev/zero"))


async def test_a_missing_program_is_named(programs: SystemPrograms) -> None:
    with pytest.raises(MachineError, match="no-such-program cannot be run"):
        await programs.run(("no-such-program",))


async def test_a_program_that_runs_apart_has_its_own_scope(programs: SystemPrograms, tmp_path: Path) -> None:
    done = await programs.run_apart(("sh", "-c", "echo one; echo E: two >&2; exit 100"), limit=60)
    assert (done.status, done.output, done.message) == (100, "one\nE: two\n", "E: two")
    options = (tmp_path / "calls").read_text().partition(" -- ")[0].split()
    assert {"--scope", "--collect", "--unit=machine-agent-apt.scope", "--property=RuntimeMaxSec=60"} <= set(options)


async def test_only_the_end_of_a_long_output_is_kept(programs: SystemPrograms, tmp_path: Path) -> None:
    done = await programs.run_apart(("sh", "-c", "yes | head -c 10000000; echo last"), limit=60)
    assert done.status == 0
    assert done.output.endswith("last\n")
    assert (tmp_path / "log").stat().st_size == module.MAX_TAIL


async def test_a_program_that_runs_apart_is_not_interrupted_by_a_cancellation(
    programs: SystemPrograms, tmp_path: Path
) -> None:
    for name in ("begun", "go", "end"):
        os.mkfifo(tmp_path / name)
    script = f"echo $$ > {tmp_path}/begun; read line < {tmp_path}/go; echo finished > {tmp_path}/end"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: programs.run_apart(("sh", "-c", script), limit=60))
        async with await trio.open_file(tmp_path / "begun") as begun:
            assert int(await begun.read()) > 0
        nursery.cancel_scope.cancel()
    async with await trio.open_file(tmp_path / "go", "w") as go:
        await go.write("\n")
    async with await trio.open_file(tmp_path / "end") as end:
        assert await end.read() == "finished\n"
    (process,) = programs.left
    assert await process.wait() == 0


async def test_an_earlier_program_that_still_runs_is_a_plain_problem(programs: SystemPrograms, tmp_path: Path) -> None:
    (tmp_path / "busy").write_text(f"Failed to start transient scope unit: Unit {EXISTS} or has a fragment file.\n")
    with pytest.raises(MachineError, match="has not ended") as caught:
        await programs.run_apart(("true",), limit=60)
    assert caught.value.kind is ErrorKind.EXHAUSTED


async def test_systemd_run_that_fails_is_not_taken_for_a_success(programs: SystemPrograms, tmp_path: Path) -> None:
    (tmp_path / "busy").write_text("Failed to connect to bus: No such file or directory\n")
    done = await programs.run_apart(("true",), limit=60)
    assert (done.status, done.message) == (1, "Failed to connect to bus: No such file or directory")


async def test_a_program_that_systemd_has_ended_took_too_long(programs: SystemPrograms) -> None:
    with pytest.raises(MachineError, match="did not end within 60 s"):
        await programs.run_apart(("sh", "-c", f"kill -{signal.SIGTERM:d} 0"), limit=60)
