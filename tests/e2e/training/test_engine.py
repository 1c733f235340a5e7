"""The local engine with programs that do what they should not: each ends with a clear reason, and reaches nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from cloud.values.limits import TRAINING_ARGUMENTS
from tests.e2e.training.engine import SMALL, Ran, isolates, order_of, processes_of, run  # noqa: F401 - a fixture
from training.engine.local import LocalEngine, inspected_interpreter, user_of
from training.engine.port import MIB, Bounds, Order, RunOutcome
from training.jobs.events import Log, Progress

pytestmark = pytest.mark.usefixtures("isolates")


async def test_a_program_that_ends_well(tmp_path: Path) -> None:
    order = order_of(tmp_path / "job", "train")
    outcome, ran = await run(order)
    assert outcome == RunOutcome()
    assert ran.events == [Log("training"), Progress(1, 1)]
    assert (order.output / "model.onnx").read_bytes() == b"model"


@pytest.mark.parametrize(
    ("do", "bounds", "reason"),
    [
        ("fail", {}, "status 1"),
        ("memory", {}, "more memory than its limit of 512 MiB"),
        ("reserve", {"address_space": 1024 * MIB}, "more memory than its limit of 512 MiB"),
        ("together", {}, "used more than 512 MiB together"),
        ("processor", {"cpu": 1}, "processor time of 1 s"),
        ("hang", {"wall": 2.0, "grace": 0.5}, "longer than 2 s"),
        ("fork", {}, "more than 10 processes"),
        ("threads", {}, "more than 10 processes"),
        ("requirement", {}, "needs not_installed, which its interpreter does not have"),
        ("full", {}, "filled its disk, which has 64 MiB and room for 500 files"),
        ("disk", {}, "filled its disk, which has 64 MiB and room for 500 files"),
        ("file", {}, "larger than the limit of 64 MiB"),
        ("files", {}, "filled its disk, which has 64 MiB and room for 500 files"),
        ("flood", {}, "printed more than 300 lines"),
    ],
)
async def test_each_misuse_ends_with_a_reason(tmp_path: Path, do: str, bounds: dict[str, Any], reason: str) -> None:
    order = order_of(tmp_path / "job", do)
    order = Order(**{**_fields(order), "bounds": Bounds(**{**_fields(SMALL), **bounds})})
    outcome, ran = await run(order)
    assert reason in outcome.reason, (outcome, ran.log[-3:])
    assert len(ran.log) <= 300
    if do == "fork":
        assert "children, then" in ran.log[-1]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=12m,mode=755", "small", folder]
    mounted = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


async def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    """Where the output is kept, after a program that stayed below the limits of its own disk."""
    outcome, ran = await run(order_of(small_disk / "job", "large"))
    assert outcome == RunOutcome("the disk of the computer that runs the job is full")
    assert ran.log[-1] == "the output of the program cannot be kept: No space left on device"


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


@pytest.mark.parametrize("limit", [Bounds().address_space, None])
async def test_reserved_address_space_is_not_memory(tmp_path: Path, limit: int | None) -> None:
    outcome, ran = await run(order_of(tmp_path / "job", "reserve", bounds=replace(SMALL, address_space=limit)))
    assert (outcome, ran.log) == (RunOutcome(), ["reserved"])


@pytest.mark.parametrize(
    "text", ["😀" * TRAINING_ARGUMENTS.value, "--do=fail", "$(id) `id` ; 'a' \"b\"\n%s\t{}", " ", "", "\u202e\x1b[31m"]
)
async def test_arguments_arrive_as_they_were_submitted(tmp_path: Path, text: str) -> None:
    order = order_of(tmp_path / "job", "argument", text)
    outcome, _ = await run(order)
    assert outcome == RunOutcome()
    assert (order.output / "argument").read_text() == text


async def test_an_endless_line_is_cut(tmp_path: Path) -> None:
    outcome, ran = await run(order_of(tmp_path / "job", "endless"))
    assert outcome == RunOutcome()
    assert [len(line) for line in ran.log] == [4000]


async def test_output_is_slowed_down_to_the_rate(tmp_path: Path) -> None:
    order = order_of(tmp_path / "job", "flood", bounds=Bounds(wall=3.0, rate=100, lines=10_000, grace=0.5))
    outcome, ran = await run(order)
    assert "longer than 3 s" in outcome.reason
    assert 100 <= len(ran.log) <= 400 + 100


async def test_a_cancelled_program_writes_a_checkpoint_and_continues(tmp_path: Path) -> None:
    order = order_of(tmp_path / "job", "resume")
    ran = Ran()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LocalEngine(python=sys.executable).run, order, ran.sink)
        await ran.printed.wait()
        nursery.cancel_scope.cancel()
    assert ran.log == ["start 0"]
    assert (order.checkpoints / "count").read_text() == "1"
    outcome, ran = await run(order)
    assert outcome == RunOutcome()
    assert ran.log == ["start 1"]


async def test_foreign_programs_are_refused_without_isolation(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="need isolation"):
        await LocalEngine(isolate=False, python=sys.executable).run(order_of(tmp_path / "job", "train"), Ran().sink)


@pytest.mark.parametrize("isolate", [True, False])
async def test_programs_of_this_project(tmp_path: Path, isolate: bool) -> None:
    """They run without isolation, too, from the packages of this project, and without other processes left."""
    for module, arguments, reason in (
        ("this", (), ""),
        ("training.trainers.missing", (), "status 1"),
        ("timeit", ("-n1", "-r1", "import time; time.sleep(1000)"), "longer than 2 s"),
        ("timeit", ("-n1", "-r1", "import training.jobs.events, schema.errors"), ""),
        ("timeit", ("-n1", "-r1", "bytearray(2**30)"), "more memory than its limit of 512 MiB"),
    ):
        bounds = Bounds(memory=512 * MIB, wall=2.0, grace=0.5)
        order, ran = Order("job", tmp_path / "job", module, arguments, bounds=bounds), Ran()
        os.makedirs(order.dataset, exist_ok=True)
        outcome = await LocalEngine(isolate=isolate).run(order, ran.sink)
        assert reason in outcome.reason, (outcome, ran.log)
        assert bool(reason) == bool(outcome.reason), (outcome, ran.log)
        assert processes_of(tmp_path) == []


async def test_the_interpreter(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="cannot be run"):
        await inspected_interpreter(str(tmp_path / "python"))
    assert json.loads(json.dumps([str(path) for path in (await inspected_interpreter(sys.executable)).folders]))


def test_users_of_jobs_differ() -> None:
    users = [user_of(f"job {number}") for number in range(1000)]
    assert len(set(users)) > 990
    assert min(users) >= 1_500_000_000
