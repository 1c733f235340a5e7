"""The local engine: nothing of a program outlives the program, its engine, or its silence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.e2e.training.engine import SMALL, Ran, isolates, order_of, processes_of, run  # noqa: F401 - a fixture
from tests.processes import running
from training.engine import lock
from training.engine.local import ROOT, LocalEngine
from training.engine.port import Bounds, RunOutcome

pytestmark = pytest.mark.usefixtures("isolates")


async def test_nothing_of_a_program_outlives_it(tmp_path: Path) -> None:
    outcome, ran = await run(order_of(tmp_path / "job", "daemon"))
    assert outcome == RunOutcome()
    assert ran.log == ["daemon"]
    assert running("print('daemon'") == []


async def test_a_program_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    order, ran = order_of(tmp_path / "job", "hang", bounds=Bounds(grace=0.5)), Ran()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(LocalEngine(python=sys.executable).run, order, ran.sink)
            await ran.printed.wait()
            nursery.cancel_scope.cancel()


DYING: Final = """
import dataclasses, os, sys, trio
from pathlib import Path
from training.engine import local, lock
from training.engine.local import LocalEngine
from tests.e2e.training.engine import order_of
folder, isolate = Path(sys.argv[1]), sys.argv[2] == "isolated"
local.SILENCE, local.LIFE = float(sys.argv[3]), 0.2
async def sink(events):
    print(*[event.message for event in events], flush=True)
order = dataclasses.replace(order_of(folder / "job", "hang"), lock=lock.path_of(folder, "engine"))
if not isolate:
    code = "import signal, time as t; signal.signal(15, 1); print('hanging'); t.sleep(3); print('still'); t.sleep(1000)"
    order = dataclasses.replace(order, program=None, module="timeit", arguments=("-n1", "-r1", code, f"#{folder}"))
lock.hold(folder, "engine")
trio.run(LocalEngine(isolate=isolate, python=sys.executable).run, order, sink)
"""


@pytest.mark.parametrize("confined", ["isolated", "limited"])
def test_a_program_dies_with_its_engine(tmp_path: Path, confined: str) -> None:
    with _engine(tmp_path, confined) as engine:
        assert len(processes_of(tmp_path)) >= 2
        engine.kill()
        end = time.monotonic() + 10
        while not lock.ended(tmp_path) and time.monotonic() < end:
            time.sleep(0.001)
        assert lock.ended(tmp_path) == {"engine"}
        assert processes_of(tmp_path) == []  # a worker that takes over the job relies on the lock


@pytest.mark.parametrize("confined", ["isolated", "limited"])
def test_the_lock_is_held_as_long_as_a_program_runs(tmp_path: Path, confined: str) -> None:
    """Also if the process around it was stopped in the moment in which its engine died."""
    with _engine(tmp_path, confined) as engine:
        watcher = min(processes_of(tmp_path))
        os.kill(watcher, signal.SIGSTOP)
        engine.kill()
        engine.wait()
        assert lock.ended(tmp_path) == frozenset()
        assert len(processes_of(tmp_path)) >= 2
        os.kill(watcher, signal.SIGCONT)
        end = time.monotonic() + 10
        while lock.ended(tmp_path) != {"engine"} and time.monotonic() < end:
            time.sleep(0.01)  # a process that ends releases its memory, which names it here, before its files
        assert processes_of(tmp_path) == []
        assert lock.ended(tmp_path) == {"engine"}


@pytest.mark.parametrize("confined", ["isolated", "limited"])
def test_a_program_ends_when_its_engine_falls_silent(tmp_path: Path, confined: str) -> None:
    """A stopped engine renews no lease, so another worker may start the job."""
    with _engine(tmp_path, confined, silence=1.5) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == "still\n"  # 3 s later: the engine gave signs of life
        os.kill(engine.pid, signal.SIGSTOP)
        end = time.monotonic() + 20
        while processes_of(tmp_path) and time.monotonic() < end:
            time.sleep(0.05)
        assert processes_of(tmp_path) == []


@contextmanager
def _engine(folder: Path, confined: str, silence: float = 45.0) -> Iterator[subprocess.Popen[str]]:
    """Run an engine with a program that ignores SIGTERM."""
    words = [sys.executable, "-c", DYING, str(folder), confined, str(silence)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT, text=True) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == "hanging\n"
        try:
            yield engine
        finally:
            engine.kill()
