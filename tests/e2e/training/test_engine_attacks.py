"""The local engine with programs that try to hold more than their limits of disk, memory and sockets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import trio

from support.foreign.removal import remove
from tests.e2e.training.engine import SMALL, Ran, isolates, order_of, run  # noqa: F401 - a fixture
from tests.processes import running
from training.engine import local, lock
from training.engine.local import ROOT, LocalEngine
from training.engine.port import MIB, Order, RunOutcome

ATTACKS: Final = Path(__file__).with_name("attacks.py")
SLOW: Final = replace(SMALL, wall=60.0)

pytestmark = pytest.mark.usefixtures("isolates")


def attack(folder: Path, do: str) -> Order:
    return order_of(folder / "job", do, bounds=SLOW, script=ATTACKS)


@pytest.mark.parametrize("do", ["unlinked", "deep", "noaccess", "shared_memory"])
async def test_the_disk_has_a_size(tmp_path: Path, do: str) -> None:
    _, ran = await run(attack(tmp_path, do))
    amount, _, reason = ran.log[0].partition(" MiB, then ")
    assert reason == "ENOSPC", ran.log
    assert 0 < int(amount) <= SMALL.disk // MIB
    assert remove(tmp_path / "job").complete


@pytest.mark.parametrize("do", ["inodes", "folders", "links"])
async def test_the_disk_has_room_for_so_many_entries(tmp_path: Path, do: str) -> None:
    _, ran = await run(attack(tmp_path, do))
    count, _, reason = ran.log[0].partition(f" {'files' if do == 'inodes' else do}, then ")
    assert reason == "ENOSPC", ran.log
    assert 0 < int(count) <= SMALL.files + 20
    assert remove(tmp_path / "job").complete


@pytest.mark.parametrize("do", ["memfd", "shm", "anonymous"])
async def test_memory_that_nothing_counts_is_refused(tmp_path: Path, do: str) -> None:
    outcome, ran = await run(attack(tmp_path, do))
    assert outcome == RunOutcome()
    assert ran.log == ["0 MiB, then EPERM"]


async def test_memory_of_a_device_is_refused(tmp_path: Path) -> None:
    _, ran = await run(attack(tmp_path, "zero"))
    assert ran.log == ["no device: No such file or directory"]


async def test_the_disk_counts_as_memory(tmp_path: Path) -> None:
    order = replace(attack(tmp_path, "on_disk"), bounds=replace(SLOW, disk=256 * MIB))
    outcome, _ = await run(order)
    assert outcome.reason == "the processes of the program used more than 512 MiB together"


async def test_sockets_of_other_families_are_refused(tmp_path: Path) -> None:
    outcome, ran = await run(attack(tmp_path, "families"))
    assert outcome == RunOutcome()
    assert sorted(set(ran.log)) == ["family 1", "family 10", "family 2", "pair 1"]


async def test_the_output_of_a_program_is_kept(tmp_path: Path) -> None:
    """Copied as it is, but for its permissions, and nothing else of the disk."""
    order = attack(tmp_path, "well")
    outcome, ran = await run(order)
    assert (outcome, ran.log) == (RunOutcome(), [])
    assert sorted(os.listdir(order.folder)) == ["checkpoints", "dataset", "output", "plan.json", "root", "tmp"]
    assert (order.output / "folder 0" / "model.onnx").read_bytes() == b"model"
    assert len(list(order.output.glob("*/inner"))) == 100
    assert os.readlink(order.output / "latest") == "/etc/passwd"
    assert os.listdir(order.folder / "tmp") == []


async def test_an_output_that_is_too_deep_is_a_reason(tmp_path: Path) -> None:
    outcome, _ = await run(attack(tmp_path, "nested"))
    assert outcome.reason == (
        "the output of the program cannot be kept: its folders are nested more than 100 levels deep"
    )


@pytest.mark.parametrize("end", ["by request", "with the process around it"])
async def test_checkpoints_survive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    if end == "with the process around it":
        monkeypatch.setattr(local, "SAVING", 0.2)
    order, ran = attack(tmp_path, "checkpoints"), Ran()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LocalEngine(python=sys.executable).run, order, ran.sink)
        await ran.printed.wait()
        if end == "with the process around it":
            await _saved(order)
            os.kill(running(order.folder / "plan.json")[0], signal.SIGKILL)  # the first is the process around it
        else:
            nursery.cancel_scope.cancel()
    assert (order.checkpoints / "step").read_text() == "7"
    outcome, ran = await run(order)
    assert (outcome, ran.log) == (RunOutcome(), ["continues after 7"])
    assert (order.output / "model.onnx").read_bytes() == b"model"


async def _saved(order: Order) -> None:
    with trio.fail_after(60):
        while not (order.checkpoints / "step").exists():  # noqa: ASYNC110 - no event of another process
            await trio.sleep(0.05)


ENGINE: Final = """
import dataclasses, sys, trio
from pathlib import Path
from tests.e2e.training.test_engine_attacks import attack
from training.engine import lock
from training.engine.local import LocalEngine
folder = Path(sys.argv[1])
async def sink(events):
    print(*[event.message for event in events], flush=True)
lock.hold(folder, "engine")
order = dataclasses.replace(attack(folder, "checkpoints"), lock=lock.path_of(folder, "engine"))
trio.run(LocalEngine(python=sys.executable).run, order, sink)
"""


async def test_checkpoints_survive_the_engine(tmp_path: Path) -> None:
    """They are copied before the lock is free, so before another engine takes the job."""
    _start_and_kill_an_engine(tmp_path)
    with trio.fail_after(60):
        while not lock.ended(tmp_path):  # noqa: ASYNC110 - no event of another process
            await trio.sleep(0.01)
    assert (tmp_path / "job" / "checkpoints" / "step").read_text() == "7"
    outcome, ran = await run(attack(tmp_path, "checkpoints"))
    assert (outcome, ran.log) == (RunOutcome(), ["continues after 7"])


def _start_and_kill_an_engine(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ENGINE, folder], stdout=subprocess.PIPE, cwd=ROOT) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == b"saved\n"
        engine.kill()
