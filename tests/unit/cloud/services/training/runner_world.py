"""A runner with an engine that does what a test says."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from cloud.domain.registry import files, items
from cloud.domain.training import jobs
from cloud.server.memory import MemoryCloud
from cloud.services.training.runner import Runner, RunnerSettings
from tests.unit.cloud.services.training.world import Tenant, able, tenant
from training.engine.port import Order, RunOutcome, Sink
from training.jobs.events import Log, Progress

Program = Callable[[Order, Sink], Awaitable[RunOutcome]]


async def well(order: Order, sink: Sink) -> RunOutcome:
    await sink([Log("hello"), Progress(1, 1)])
    order.output.mkdir()
    (order.output / "model.onnx").write_bytes(b"model")
    return RunOutcome()


async def hang(order: Order, sink: Sink) -> RunOutcome:
    await sink([Log("hanging")])
    await trio.sleep_forever()


class ScriptedEngine:
    """Runs Python functions instead of programs."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.orders: list[Order] = []
        self.running: dict[str, int] = {}
        self.idle = trio.Event()  # a program has ended

    async def run(self, order: Order, sink: Sink) -> RunOutcome:
        assert order.id not in self.running
        self.running[order.id] = 1
        self.orders.append(order)
        try:
            return await self.program(order, sink)
        finally:
            del self.running[order.id]
            self.idle.set()


class World:
    def __init__(self, us: Tenant, folder: Path) -> None:
        self.us = us
        self.folder = folder
        self.backbone = folder / "backbone.onnx"
        self.backbone.write_bytes(b"weights")

    @asynccontextmanager
    async def running(
        self, program: Program, slots: int = 1, stale: Iterable[Path] = ()
    ) -> AsyncIterator[ScriptedEngine]:
        engine = ScriptedEngine(program)
        settings = RunnerSettings(self.folder / "training", slots, self.backbone)
        async with trio.open_nursery() as nursery:
            runner = Runner(self.us.cloud.cloud, engine, settings)
            runner.remove(stale)
            await nursery.start(runner.run)
            yield engine
            nursery.cancel_scope.cancel()

    async def until(self, subject: str, *states: str) -> Any:
        cloud = self.us.cloud.cloud
        with cloud.events.listening(jobs.TOPIC, subject, also=[jobs.EVENTS]) as listener, trio.fail_after(20):
            while (job := await self.us.job(subject))["status"] not in states:
                await listener.next()
        return job

    async def until_logged(self, subject: str, message: str) -> None:
        cloud = self.us.cloud.cloud
        with cloud.events.listening(jobs.EVENTS, subject) as listener, trio.fail_after(20):
            while message not in await self.us.log(subject):
                await listener.next()

    async def model(self, version: str = "1") -> dict[str, bytes]:
        """Return the files of the model's package."""
        cloud, owner = self.us.cloud.cloud, self.us.organization

        def work(sql: Any) -> files.File:
            item = items.find(sql, f"{owner}:parts")
            return files.best(files.files(sql, item.id), item, version, "linux/arm64", ())

        file = await cloud.store.read(work)
        content = b"".join([piece async for piece in cloud.blobs.read(file.blob)])
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            return {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr]


@pytest.fixture
async def world(cloud: MemoryCloud, tmp_path: Path) -> World:
    us = await tenant(able(cloud))
    await us.add("ok")
    await us.add("bad")
    return World(us, tmp_path)
