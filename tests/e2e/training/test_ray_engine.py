"""The engine for Ray clusters, with real programs and a Jobs API that misbehaves; see also ray_cluster.py."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel

from tests.processes import running
from tests.ray_cluster import TOKEN, cluster
from tests.ray_cluster import Cluster as RayCluster
from training.engine.port import MIB, Bounds, Order, RunOutcome
from training.engine.ray_client import parse_address, parse_placement, ray_jobs
from training.engine.ray_engine import Cluster, RayEngine, Times, attempts
from training.jobs.events import JobEvent, Log

SCRIPT = Path(__file__).with_name("script.py")
LIMIT = 60.0
TIMES = Times(look=0.1, ask=0.2, life=0.2, silence=1.5, margin=0.5, settle=0.5, pending=30.0, reach=30.0)


@dataclass
class World:
    """An engine with a cluster, and what jobs have reported."""

    server: RayCluster
    engine: RayEngine
    folder: Path
    orders: int = 0
    lines: list[str] = field(default_factory=list)
    news: trio.Event = field(default_factory=trio.Event)

    def order(self, do: str, *arguments: str, **bounds: Any) -> Order:
        self.orders += 1  # ids of submissions cannot be used again
        name = "job" if self.orders == 1 else f"job{self.orders}"
        folder = self.folder / name
        program = self.folder / "program"
        if not program.exists():
            (program / "model").mkdir(parents=True)
            (program / "model" / "__init__.py").touch()
            shutil.copy(SCRIPT, program / "model" / "training.py")
        order = Order(
            name,
            folder,
            "model.training",
            (f"--do={do}", f"--model_output_directory={folder / 'output'}", *arguments),
            program=program,
            bounds=Bounds(**{"wall": 50.0, "grace": 1.0, **bounds}),
        )
        order.dataset.mkdir(parents=True, exist_ok=True)
        return order

    async def sink(self, events: Sequence[JobEvent]) -> None:
        self.lines += [event.message for event in events if isinstance(event, Log)]
        self.news.set()
        self.news = trio.Event()

    async def run(self, order: Order) -> RunOutcome:
        with trio.fail_after(LIMIT):
            return await self.engine.run(order, self.sink)

    async def until(self, text: str) -> None:
        """Wait for a line."""
        with trio.fail_after(LIMIT):
            while not any(text in line for line in self.lines):
                await self.news.wait()

    def programs(self) -> list[int]:
        """Return the processes of the job."""
        return running("model.training", self.folder)


@asynccontextmanager
async def opened(folder: Path, **more: Any) -> AsyncIterator[World]:
    async with cluster() as server, ray_jobs(server.url, TOKEN) as jobs:
        settings = Cluster(**{"python": sys.executable, "scripts": True, "times": TIMES, **more})
        yield World(server, RayEngine(jobs, settings), folder)


async def test_a_program_runs_on_the_cluster(tmp_path: Path) -> None:
    placement = parse_placement("CPU=2,GPU=1,memory=512,trainer=1")
    async with opened(tmp_path, placement=placement) as world:
        order = world.order("train")
        assert await world.run(order) == RunOutcome()
        assert (order.output / "model.onnx").read_bytes() == b"model"
        assert "training" in world.lines
        body = world.server.jobs["job-1"].body
        assert (body["entrypoint_num_cpus"], body["entrypoint_num_gpus"], body["entrypoint_memory"]) == (
            2,
            1,
            512 * MIB,
        )
        assert body["entrypoint_resources"] == {"trainer": 1}
        assert TOKEN not in body["entrypoint"]
        plan = (tmp_path / "job" / "attempts" / "1" / "plan.json").read_text()
        assert TOKEN not in plan


async def test_failures_have_the_reasons_of_the_local_engine(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        node = f" (on the node {socket.gethostname()})"
        reason = (await world.run(world.order("fail"))).reason
        assert reason == f"the program failed with status 1; its log says why{node}"
        assert "no idea how" in world.lines
        reason = (await world.run(world.order("memory", memory=300 * MIB))).reason
        assert reason == f"the program needed more memory than its limit of 300 MiB{node}"
        assert "--ray-python" in (await world.run(world.order("requirement"))).reason
        assert "more than 100 files" in (await world.run(world.order("files", files=100))).reason
        assert "more than 50 lines" in (await world.run(world.order("flood", lines=50, rate=1000))).reason
        assert "longer than 2 s" in (await world.run(world.order("hang", wall=2.0))).reason
        assert world.programs() == []


async def test_cancellation_gives_time_for_a_checkpoint(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        order = world.order("resume", grace=5.0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.run, order)
            await world.until("start 0")
            nursery.cancel_scope.cancel()
        assert world.programs() == []
        assert await world.run(order) == RunOutcome()  # continues from the checkpoint
        assert "start 1" in world.lines
        assert [folder.name for folder in attempts(order.folder)] == ["1", "2"]


async def test_cancellation_ends_a_program_that_ignores_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.run, world.order("hang", grace=1.0))
            await world.until("hanging")
            began = time.monotonic()
            nursery.cancel_scope.cancel()
        assert time.monotonic() - began < 10
        assert world.programs() == []


async def test_a_job_that_loses_each_node_fails(tmp_path: Path) -> None:
    async with opened(tmp_path, losses=1) as world:

        async def lose() -> None:
            for number in (1, 2):
                with trio.fail_after(LIMIT):
                    while f"job-{number}" not in world.server.jobs or not world.programs():  # noqa: ASYNC110
                        await trio.sleep(0.02)
                world.server.cut(f"job-{number}")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(lose)
            outcome = await world.run(world.order("hang"))
        assert outcome.reason.startswith(
            "the job has lost its node 2 times, at last: Ray says FAILED: Job supervisor actor died"
        )
        assert world.programs() == []


async def test_a_program_ends_without_a_sign_of_life(tmp_path: Path) -> None:
    """As after a killed cloud, or on a node that does not see the shared folder any more."""
    async with opened(tmp_path) as world:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.run, world.order("hang"))
            await world.until("hanging")
            (program,) = world.programs()
            (node,) = [each for each in _parents(program) if _is_node(each)]
            os.kill(node, signal.SIGSTOP)
            with trio.fail_after(LIMIT):
                while world.programs():  # noqa: ASYNC110 - processes have no events here
                    await trio.sleep(0.05)
            os.kill(node, signal.SIGCONT)
            nursery.cancel_scope.cancel()


async def test_background_processes_end_with_their_program(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        before = set(running("print('daemon'"))
        await world.run(world.order("daemon"))
        assert set(running("print('daemon'")) == before


def _parents(process: int) -> list[int]:
    parents = []
    while process > 1:
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        parents.append(process)
    return parents


def _is_node(process: int) -> bool:
    return b"ray_node.py" in Path(f"/proc/{process}/cmdline").read_bytes()


async def test_answers_are_bounded_and_a_silent_cluster_is_waited_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        world.server.endless = True
        async with trio.open_nursery() as nursery:

            async def recover() -> None:
                await world.until("longer than 1048576 bytes")
                world.server.endless = False

            nursery.start_soon(recover)
            assert await world.run(world.order("train")) == RunOutcome()
        assert any("longer than 1048576 bytes" in line for line in world.lines)


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("ray://head", "http://head:8265"),
        ("ray://10.0.0.1:9000", "http://10.0.0.1:9000"),
        ("ray://[::1]:8265/", "http://[::1]:8265"),
        ("ray+https://ray.example.org", "https://ray.example.org:443"),
    ],
)
def test_addresses(address: str, url: str) -> None:
    assert parse_address(address) == url


@pytest.mark.parametrize("address", ["http://head", "ray://", "ray://head/path", "ray://user:secret@head", "head:8265"])
def test_invalid_addresses_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"ray://|--ray-token") as caught:
        parse_address(address)
    if "secret" in address:
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["CPU", "CPU=-1", "=1", "CPU=many", "CPU=nan", "GPU=inf"])
def test_invalid_resources_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="NAME=NUMBER"):
        parse_placement(text)
