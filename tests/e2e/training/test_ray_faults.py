"""The Ray engine with a cluster that misbehaves: a program never runs twice at once, and each end has its reason."""

from __future__ import annotations

import os
import re
import socket
import sys
import venv
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from schema.errors import ErrorKind, MachineError
from tests.ray_cluster import NODE, TOKEN, Cluster, cluster
from training.engine import ray_client as calls
from training.engine import ray_engine
from training.engine.port import MIB, Bounds, Order, RunOutcome
from training.jobs.events import JobEvent, Log
from training.weights import BACKBONE

QUICK: Final = ray_engine.Times(
    look=0.05, ask=0.1, life=0.2, silence=1.5, margin=0.5, settle=0.5, pending=1.0, reach=1.0
)
PROGRAM: Final = """
import os, signal, sys, time
from pathlib import Path
out = Path(next(a for a in sys.argv if a.startswith("--model_output_directory=")).partition("=")[2])
kept, marks = Path(os.environ["TRAINING_CHECKPOINTS"]), Path(os.environ["MARKS"])
def stop(*_):
    (kept / "saved").write_text("saved")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
mark = marks / str(os.getpid())
resumed = (kept / "step").exists()
print("resumed" if resumed else "from the start", flush=True)
(kept / "step").write_text("1")
for _ in range(int(os.environ["STEPS"]) if not resumed else 3):
    with mark.open("a") as file:
        file.write(f"{time.time()}\\n")
    time.sleep(0.05)
(out / "model.onnx").write_text("model")
"""


class World:
    def __init__(self, folder: Path, ray: Cluster) -> None:
        self.folder, self.ray = folder, ray
        self.log: list[str] = []
        self.job = folder / "jobs" / "j"
        self.marks = folder / "marks"

    def order(self, steps: int, **bounds: Any) -> Order:
        model = self.folder / "program" / "model"
        model.mkdir(parents=True, exist_ok=True)
        (model / "__init__.py").touch()
        (model / "training.py").write_text(PROGRAM)
        self.marks.mkdir(exist_ok=True)
        (self.job / "dataset").mkdir(parents=True, exist_ok=True)
        arguments = (f"--model_output_directory={self.job / 'output'}",)
        environment = {"MARKS": str(self.marks), "STEPS": str(steps)}
        limits = Bounds(**{"memory": 2048 * MIB, "wall": 30.0, "grace": 2.0, "rate": 10_000, **bounds})
        return Order("j", self.job, "model.training", arguments, environment, model.parent, bounds=limits)

    async def sink(self, events: Sequence[JobEvent]) -> None:
        self.log += [event.message for event in events if isinstance(event, Log)]

    async def printed(self, text: str) -> None:
        with trio.fail_after(60):
            while not any(text in line for line in self.log):  # noqa: ASYNC110 - lines arrive by looks at a file
                await trio.sleep(0.02)

    def times(self) -> list[tuple[float, float]]:
        """Return when each program first and last did something, in order."""
        spans = [[float(line) for line in path.read_text().split()] for path in self.marks.iterdir()]
        return sorted((span[0], span[-1]) for span in spans)

    @asynccontextmanager
    async def engine(self, token: str = TOKEN, times: Any = QUICK, **settings: Any) -> AsyncIterator[Any]:
        async with calls.ray_jobs(self.ray.url, token) as jobs:
            where = ray_engine.Cluster(sys.executable, scripts=True, times=times)
            yield ray_engine.RayEngine(jobs, replace(where, **settings))

    async def run(self, order: Order, **settings: Any) -> RunOutcome:
        with trio.fail_after(40):
            async with self.engine(**settings) as engine:
                outcome: RunOutcome = await engine.run(order, self.sink)
                return outcome


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with cluster() as ray:
        yield World(tmp_path, ray)


async def test_a_program_that_ends_well(world: World) -> None:
    assert await world.run(world.order(2)) == RunOutcome()
    assert (world.job / "output" / "model.onnx").read_text() == "model"
    assert world.log == ["from the start"]
    (job,) = world.ray.jobs.values()
    assert "MARKS" not in str(job.body)  # the environment may contain keys, and the entry point is in logs


async def test_a_job_whose_node_was_lost_runs_once_at_a_time(world: World) -> None:
    async with trio.open_nursery() as nursery:

        async def cut() -> None:
            await world.printed("from the start")
            world.ray.cut("j-1")  # the program goes on

        nursery.start_soon(cut)
        outcome = await world.run(world.order(1000))
    assert outcome == RunOutcome()
    assert "resumed" in world.log
    (_, end), (begin, _) = world.times()
    assert begin > end
    assert sorted(world.ray.jobs) == ["j-1", "j-2"]


async def test_a_head_that_forgot_its_jobs(world: World) -> None:
    async with trio.open_nursery() as nursery:

        async def restart() -> None:
            await world.printed("from the start")
            world.ray.restart()

        nursery.start_soon(restart)
        assert await world.run(world.order(1000)) == RunOutcome()
    (_, end), (begin, _) = world.times()
    assert begin > end


async def test_a_job_that_was_left_by_a_killed_cloud_ends_before_the_next_start(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None:
        return

    order = world.order(1000)
    with monkeypatch.context() as patch:
        patch.setattr(ray_engine._Attempt, "_ask_to_end", nothing)  # a killed cloud asks for nothing
        async with world.engine() as engine, trio.open_nursery() as nursery:
            nursery.start_soon(engine.run, order, world.sink)
            await world.printed("from the start")
            nursery.cancel_scope.cancel()
    assert world.ray.jobs["j-1"].status == "RUNNING"
    assert await world.run(order) == RunOutcome()
    assert "resumed" in world.log
    (_, end), (begin, _) = world.times()
    assert begin > end


async def test_a_program_without_a_sign_of_life_is_a_lost_node(world: World) -> None:
    """Its node was cut off for longer than the silence, and then writes that it killed the program."""
    times = replace(QUICK, life=1000.0, silence=1.0)
    outcome = await world.run(world.order(1000), times=times, losses=0)
    assert "lost its node" in outcome.reason


async def test_a_cancelled_program_saves_a_checkpoint(world: World) -> None:
    async with world.engine() as engine, trio.open_nursery() as nursery:
        nursery.start_soon(engine.run, world.order(1000), world.sink)
        await world.printed("from the start")
        nursery.cancel_scope.cancel()
    assert (world.job / "attempts" / "1" / "checkpoints" / "saved").exists()
    assert (world.job / "attempts" / "1" / "ended").exists()


async def test_a_job_that_no_node_can_run(world: World) -> None:
    world.ray.has_node = False
    outcome = await world.run(world.order(2), placement=calls.parse_placement("CPU=64,GPU=8"))
    assert "no node of the Ray cluster has run the job within 1 s: it needs CPU=64,GPU=8" in outcome.reason
    assert ("POST", "/api/jobs/j-1/stop") in world.ray.calls


async def test_a_lost_answer_to_a_submission_starts_nothing_twice(world: World) -> None:
    world.ray.drops = 1
    assert await world.run(world.order(2)) == RunOutcome()
    assert len(world.times()) == 1


async def test_a_wrong_token_is_reported_at_once(world: World) -> None:
    with trio.fail_after(50), pytest.raises(MachineError, match="refuses the token") as caught:
        await world.run(world.order(2, grace=60.0), token="wrong-secret")
    assert caught.value.kind is ErrorKind.PERMISSION
    assert "wrong-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "explanation"),
    [
        ("folder", "can't open file '/not-mounted/j/attempts/1/ray_node.py': [Errno 2] No such file or directory"),
        ("interpreter", "/no/such/python"),
        ("long output", "xxxx"),  # so long that Ray's own words are cut off
    ],
)
async def test_a_node_that_cannot_start_the_program(world: World, wrong: str, explanation: str) -> None:
    python = {"folder": sys.executable, "interpreter": "/no/such/python"}.get(wrong, str(world.folder / "python"))
    if wrong == "folder":
        world.ray.unseen = str(world.folder / "jobs")
    (world.folder / "python").write_text("#!/bin/sh\nprintf %01000d 0 | tr 0 x\nexit 1\n")
    (world.folder / "python").chmod(0o700)
    reason = (await world.run(world.order(2), python=python)).reason
    assert reason.startswith(
        f"the node {NODE} could not start the program: {world.folder / 'jobs'} must be the same folder on all nodes, "
        f"and {python} an interpreter there (Ray says FAILED: "
    )
    assert explanation in reason
    assert sorted(world.ray.jobs) == ["j-1"]


async def test_a_library_that_the_node_lacks(world: World) -> None:
    venv.create(world.folder / "empty", symlinks=True)
    order = replace(world.order(2), program=None, module="training.trainers.classification", readable=(BACKBONE,))
    reason = (await world.run(order, python=str(world.folder / "empty" / "bin" / "python"))).reason
    assert re.fullmatch(
        r"the program needs \w+, which its interpreter does not have: install it for the interpreter of the nodes, "
        rf"see --ray-python \(on the node {re.escape(socket.gethostname())}\)",
        reason,
    )


async def test_a_name_of_a_node_that_a_program_has_replaced(world: World) -> None:
    """Programs run as the user who owns the files of their attempt."""
    order = world.order(2)
    assert order.program is not None
    (order.program / "model" / "training.py").write_text(
        "import os\nos.chdir(os.environ['TRAINING_CHECKPOINTS'] + '/..')\n"
        "os.unlink('started')\nos.symlink('/etc/passwd', 'started')\nraise SystemExit(3)\n"
    )
    reason = (await world.run(order)).reason
    assert reason == "the program failed with status 3; its log says why (on the node without a name)"


async def test_scripts_of_tenants_need_permission(world: World) -> None:
    with pytest.raises(MachineError, match="isolation"):
        await world.run(world.order(2), scripts=False)
    assert not world.ray.jobs


async def test_a_log_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    """A program on a node can replace the files of its attempt; the cloud may read more than the node."""
    (tmp_path / "secret").write_text("a key\n")
    (tmp_path / "log").symlink_to(tmp_path / "secret")
    with suppress(OSError):
        assert ray_engine._read(tmp_path / "log", 0) == b""


async def test_a_sign_of_life_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("important content\n")
    (tmp_path / "alive").symlink_to(tmp_path / "other")
    with suppress(OSError):
        ray_engine.say(tmp_path, "run 1")
    assert (tmp_path / "other").read_text() == "important content\n"


async def test_checkpoints_that_are_a_link_are_not_copied(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("a key")
    (tmp_path / "checkpoints").symlink_to(tmp_path / "private")
    (tmp_path / "next").mkdir()
    with suppress(OSError):
        ray_engine._copy(tmp_path / "checkpoints", tmp_path / "next")
    assert os.listdir(tmp_path / "next") == []
