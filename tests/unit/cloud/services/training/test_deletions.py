"""What jobs need is deleted, changed or taken away while they wait or run."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from cloud.domain.organizations.keys import Grant, create_key
from cloud.server.memory import APP, MemoryCloud
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import DATA, SETS
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.services.training.test_runner import World, hang, well
from tests.unit.cloud.services.training.world import TRAINING, able, tenant
from training.engine.port import Order, RunOutcome, Sink
from training.jobs.events import Log

PACKAGES = "viam.app.packages.v1.PackageService"


class Held:
    """A program that continues when the test says so, and reports mistakes about some pictures."""

    def __init__(self, *mistakes: str) -> None:
        self.go_on = trio.Event()
        self._mistakes = mistakes

    async def __call__(self, order: Order, sink: Sink) -> RunOutcome:
        await sink([Log("started")])
        await self.go_on.wait()
        outcome = await well(order, sink)
        rows = [
            {"id": picture, "labels": ["ok"], "predicted": ["bad"], "probabilities": {"ok": 0.1, "bad": 0.9}}
            for picture in self._mistakes
        ]
        report = {"labels": ["ok", "bad"], "test": {"pictures": 4, "worst_mistakes": rows}}
        (order.output / "report.json").write_text(json.dumps(report))
        return outcome


@pytest.fixture
async def world(cloud: MemoryCloud, tmp_path: Path) -> World:
    us = await tenant(able(cloud), "Ours")
    await us.add("ok")
    await us.add("bad")
    return World(us, tmp_path)


async def suspects(world: World) -> list[str]:
    rows = await world.us.cloud.cloud.store.read(lambda sql: sql.rows("SELECT file_id FROM dataset_suspects"))
    return [row["file_id"] for row in rows]


async def test_a_dataset_is_deleted_while_its_job_runs(world: World) -> None:
    program = Held(*await world.us.uploads.ids(dataset_id=world.us.dataset))
    async with world.running(program):
        subject = await world.us.submit()
        await world.until_logged(subject, "started")
        await world.us.call(SETS, "delete_dataset", id=world.us.dataset)
        program.go_on.set()
        await world.until(subject, "COMPLETED")  # it had read its pictures
    assert "model.onnx" in await world.model()
    assert await suspects(world) == []


async def test_pictures_are_deleted_while_their_job_runs(world: World) -> None:
    kept, *deleted = await world.us.uploads.ids(dataset_id=world.us.dataset)
    program = Held(kept, *deleted)
    async with world.running(program):
        subject = await world.us.submit()
        await world.until_logged(subject, "started")
        await world.us.call(DATA, "delete_binary_data_by_ids", binary_data_ids=deleted)
        program.go_on.set()
        await world.until(subject, "COMPLETED")
    assert await suspects(world) == [kept]


async def test_a_version_is_uploaded_by_hand_while_its_job_runs(world: World) -> None:
    async def pieces() -> Any:
        yield b"\x1f\x8b"

    program = Held()
    async with world.running(program):
        subject = await world.us.submit()
        await world.until_logged(subject, "started")
        values = {"organization_id": world.us.organization, "name": "parts", "version": "1", "type": "ML_MODEL"}
        await world.us.call(PACKAGES, "create_package", **values, pieces=pieces())
        program.go_on.set()
        job = await world.until(subject, "FAILED")
    assert "the model could not be stored" in job["error_status"]["message"]
    assert "exists already" in job["error_status"]["message"]


async def empty(world: World) -> None:
    """Delete everything that prevents the deletion of the organization."""
    us = world.us
    await us.call(SETS, "delete_dataset", id=us.dataset)
    for location in await us.call(APP, "list_locations", organization_id=us.organization):
        for robot in await us.call(APP, "list_robots", location_id=location["id"]):
            await us.call(APP, "delete_robot", id=robot["id"])
        await us.call(APP, "delete_location", location_id=location["id"])


async def test_the_program_of_a_deleted_organization_ends_at_once(world: World) -> None:
    async with world.running(hang) as engine:
        waiting = await world.us.submit(model_version="0")
        await world.us.call(TRAINING, "cancel_training_job", id=waiting)
        subject = await world.us.submit()
        await world.until_logged(subject, "hanging")
        await world.us.submit(model_version="2")
        await empty(world)
        await world.us.call(APP, "delete_organization", organization_id=world.us.organization)
        with trio.fail_after(5):  # the lease would be renewed after 20 s
            await engine.idle.wait()
    rows = await world.us.cloud.cloud.store.read(
        lambda sql: [sql.rows(f"SELECT * FROM {table}") for table in ("training_jobs", "training_events")]
    )
    assert rows == [[], []]
    assert len(engine.orders) == 1


async def test_an_organization_that_is_not_empty_keeps_its_jobs(world: World) -> None:
    async with world.running(hang) as engine:
        subject = await world.us.submit()
        await world.until_logged(subject, "hanging")
        with pytest.raises(MachineError, match="still has"):
            await world.us.call(APP, "delete_organization", organization_id=world.us.organization)
        assert list(engine.running) == [subject]
        assert (await world.us.job(subject))["status"] == "IN_PROGRESS"


async def test_a_job_goes_on_without_the_key_that_submitted_it(world: World, clock: Clock) -> None:
    """It belongs to the organization, whose other owners see and cancel it. The key cannot do so any more."""
    us, store = world.us, world.us.cloud.cloud.store
    grant = Grant("owner", "organization", us.organization)
    key, _ = await store.write(partial(create_key, owner=us.organization, name="k", grants=[grant], now=clock()))
    client = us.cloud.client(key)
    job = {"organization_id": us.organization, "dataset_id": us.dataset, "model_name": "parts", "model_type": 1}
    subject = await client.call(TRAINING, "", "submit_training_job", **job, model_version="1", tags=["ok", "bad"])
    await us.call(APP, "delete_key", id=key)
    with pytest.raises(MachineError) as refused:
        await client.call(TRAINING, "", "cancel_training_job", id=subject)
    assert refused.value.kind in (ErrorKind.PERMISSION, ErrorKind.UNAUTHENTICATED, ErrorKind.NOT_FOUND)
    async with world.running(well):
        await world.until(subject, "COMPLETED")


async def test_the_script_of_a_waiting_job_is_deleted(world: World) -> None:
    async def pieces() -> Any:
        yield b"\x1f\x8b"

    us = world.us
    values = {"organization_id": us.organization, "name": "script", "version": "1", "type": "ML_TRAINING"}
    await us.call(PACKAGES, "create_package", **values, pieces=pieces())
    subject = await us.call(
        TRAINING,
        "submit_custom_training_job",
        organization_id=us.organization,
        dataset_id=us.dataset,
        registry_item_id=f"{us.organization}:script",
        registry_item_version="1",
        model_name="parts",
        model_version="1",
    )
    await us.call(APP, "delete_registry_item", item_id=f"{us.organization}:script")
    async with world.running(well):
        job = await world.until(subject, "FAILED")
    assert "no registry item" in job["error_status"]["message"]
