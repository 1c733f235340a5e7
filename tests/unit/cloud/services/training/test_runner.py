"""The runner with an engine that does what a test says: every job ends once, and a completed one has its model."""

from __future__ import annotations

import errno
import io
import json
import os
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from cloud.domain.training import jobs, queue
from cloud.services.training import dataset
from cloud.services.training import runner as runner_module
from cloud.services.training.runner import folders, stale
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import DATA, SETS
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.services.training.runner_world import Program, World, hang, well
from tests.unit.cloud.services.training.runner_world import world as world
from tests.unit.cloud.services.training.world import TRAINING, tenant
from training.engine import lock
from training.engine.port import Order, RunOutcome, Sink


async def test_a_completed_job_has_its_model(world: World) -> None:
    async with world.running(well) as engine:
        subject = await world.us.submit()
        job = await world.until(subject, "COMPLETED")
    assert await world.model() == {"model.onnx": b"model"}
    assert job["synced_model_id"] == f"{world.us.organization}/parts"
    assert job["training_started"] is not None
    assert job["training_ended"] >= job["training_started"]
    assert await world.us.log(subject) == [
        "the job is pending",
        "the job is in_progress",
        "reading 20 pictures",
        "hello",
        "1 of 1 done",
        "the job is completed",
    ]
    assert not (world.folder / "training" / subject).exists()
    assert engine.orders[0].module == "training.trainers.classification"
    package = await world.us.call(
        "viam.app.packages.v1.PackageService",
        "get_package",
        id=f"{world.us.organization}/parts",
        version="latest",
        type="ML_MODEL",
    )
    assert package["info"]["version"] == "1"


async def test_the_dataset_on_disk(world: World) -> None:
    seen: list[dict[str, Any]] = []

    async def look(order: Order, sink: Sink) -> RunOutcome:
        for line in (order.dataset / "dataset.jsonl").read_text().splitlines():
            entry = json.loads(line)
            picture = order.dataset / Path(entry["image_path"]).name
            assert (str(picture), picture.read_bytes()[:4]) == (entry["image_path"], b"\x89PNG")
            seen.append(entry)
        assert json.loads((order.dataset / "labels.json").read_text()) == ["ok", "bad"]
        return RunOutcome("seen")

    ids = await world.us.uploads.ids(dataset_id=world.us.dataset)
    box = {"x_min_normalized": 0.1, "y_min_normalized": 0.2, "x_max_normalized": 0.3, "y_max_normalized": 0.4}
    await world.us.call(DATA, "add_bounding_box_to_image_by_id", binary_data_id=ids[0], label="box", **box)
    async with world.running(look):
        await world.until(await world.us.submit(), "FAILED")
    labels = [entry["classification_annotations"][0]["annotation_label"] for entry in seen]
    assert sorted(labels) == ["bad"] * 10 + ["ok"] * 10
    assert [entry["bounding_box_annotations"] for entry in seen if entry["bounding_box_annotations"]] == [
        [{"annotation_label": "box", **box}]
    ]


async def none(order: Order, sink: Sink) -> RunOutcome:
    order.output.mkdir()
    return RunOutcome()


async def linked(order: Order, sink: Sink) -> RunOutcome:
    order.output.mkdir()
    (order.output / "model.onnx").symlink_to("/etc/passwd")
    return RunOutcome()


async def broken(order: Order, sink: Sink) -> RunOutcome:
    raise MachineError("no process can be started")


async def mistaken(order: Order, sink: Sink) -> RunOutcome:
    raise ValueError("of this project")


async def failing(order: Order, sink: Sink) -> RunOutcome:
    return RunOutcome("the program failed with status 1")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (none, "without writing a model"),
        (linked, "not a regular file"),
        (broken, "no process can be started"),
        (mistaken, "internal error: ValueError"),
        (failing, "status 1"),
    ],
)
async def test_a_failed_job_has_its_reason(world: World, program: Program, reason: str) -> None:
    async with world.running(program):
        subject = await world.us.submit()
        job = await world.until(subject, "FAILED")
        assert reason in job["error_status"]["message"]
        again = await world.us.submit()  # a failed job has used no version, and the runner goes on
        await world.until(again, "FAILED")
    with pytest.raises(MachineError, match="no registry item"):
        await world.model()
    assert [path for path in (world.folder / "training").iterdir() if path.is_dir()] == []


async def test_a_full_disk(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill the disk of the cloud while it writes pictures, and while it stores a model: other jobs go on."""
    monkeypatch.setattr(runner_module, "PAUSES", (0.0, 0.0))
    puts = 0

    async def full(*_: object) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/secret")

    async def full_folder(*_: object) -> Any:
        nonlocal puts
        puts += 1
        raise MachineError("the folder of files cannot be used: No space left on device", kind=ErrorKind.UNAVAILABLE)

    begun, end = trio.Event(), trio.Event()

    async def long(order: Order, sink: Sink) -> RunOutcome:
        begun.set()
        await end.wait()
        return await well(order, sink)

    programs = iter([long, well])

    async def each(order: Order, sink: Sink) -> RunOutcome:
        return await next(programs)(order, sink)

    async with world.running(each, slots=2):
        other = await world.us.submit(model_version="other")
        await begun.wait()
        with monkeypatch.context() as patch:
            patch.setattr(dataset, "write", full)
            subject = await world.us.submit()
            reason = (await world.until(subject, "FAILED"))["error_status"]["message"]
            assert reason == "the disk of the computer that runs the job is full"
        with monkeypatch.context() as patch:
            patch.setattr(world.us.cloud.cloud.blobs, "put", full_folder)
            subject = await world.us.submit()
            reason = (await world.until(subject, "FAILED"))["error_status"]["message"]
            assert "the model could not be stored: the folder of files cannot be used: No space left" in reason
            assert puts == 3
        end.set()
        await world.until(other, "COMPLETED")


async def test_a_model_is_stored_when_its_disk_has_space_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "PAUSES", (0.0,))
    blobs = world.us.cloud.cloud.blobs
    put, refusals = blobs.put, iter([MachineError("full", kind=ErrorKind.UNAVAILABLE)])

    async def once(pieces: Any, key: str = "") -> Any:
        if (refusal := next(refusals, None)) is not None:
            raise refusal
        return await put(pieces, key)

    monkeypatch.setattr(blobs, "put", once)
    async with world.running(well):
        subject = await world.us.submit()
        await world.until(subject, "COMPLETED", "FAILED")
    assert (await world.model())["model.onnx"] == b"model"


async def test_a_dataset_that_changed_since(world: World) -> None:
    subject = await world.us.submit()
    ids = await world.us.uploads.ids(dataset_id=world.us.dataset)
    await world.us.call(
        DATA, "remove_binary_data_from_dataset_by_ids", binary_data_ids=ids[:1], dataset_id=world.us.dataset
    )
    async with world.running(well):
        assert "1 more needed" in (await world.until(subject, "FAILED"))["error_status"]["message"]


async def test_a_dataset_that_was_deleted_since(world: World) -> None:
    subject = await world.us.submit()
    await world.us.call(SETS, "delete_dataset", id=world.us.dataset)
    async with world.running(well):
        assert "no dataset" in (await world.until(subject, "FAILED"))["error_status"]["message"]


async def test_a_running_job_is_canceled(world: World) -> None:
    async with world.running(hang) as engine:
        subject = await world.us.submit()
        await world.until_logged(subject, "hanging")
        await world.us.call(TRAINING, "cancel_training_job", id=subject)
        await world.until(subject, "CANCELED")
        assert engine.running == {}


async def test_a_job_that_is_canceled_while_its_model_is_stored_has_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = runner_module._pieces

    async def pieces(*arguments: Any) -> AsyncIterator[bytes]:
        await world.us.call(TRAINING, "cancel_training_job", id=subject)
        async for piece in real(*arguments):
            yield piece

    monkeypatch.setattr(runner_module, "_pieces", pieces)
    async with world.running(well):
        subject = await world.us.submit()
        await world.until(subject, "CANCELED")
    with pytest.raises(MachineError):
        await world.model()


async def test_when_the_cloud_stops_the_job_waits_and_continues(world: World) -> None:
    async def checkpoint(order: Order, sink: Sink) -> RunOutcome:
        order.checkpoints.mkdir()
        try:
            return await hang(order, sink)
        finally:
            (order.checkpoints / "state").touch()

    async with world.running(checkpoint):
        subject = await world.us.submit()
        await world.until_logged(subject, "hanging")
    assert (await world.us.job(subject))["status"] == "PENDING"
    async with world.running(well) as engine:
        await world.until(subject, "COMPLETED")
        assert [order.id for order in engine.orders] == [subject]


async def test_a_worker_that_lost_its_job_stops_and_stores_nothing(world: World, clock: Clock) -> None:
    store = world.us.cloud.cloud.store
    async with world.running(hang) as engine:
        subject = await world.us.submit()
        await world.until_logged(subject, "hanging")

        def take_over(sql: Any) -> None:
            sql.run("UPDATE training_jobs SET lease = 0 WHERE id = ?", subject)
            queue.recover(sql, clock())
            queue.take(sql, "other", clock())

        await store.write(take_over)
        with trio.fail_after(10):
            await engine.idle.wait()
        await world.until(subject, "IN_PROGRESS")
        job = await store.read(lambda sql: jobs.job(sql, subject))
        assert (job.worker, job.attempts) == ("other", 2)


async def test_a_lost_job_is_found_at_the_next_start(world: World, clock: Clock) -> None:
    store = world.us.cloud.cloud.store
    subject = await world.us.submit()
    await store.write(lambda sql: queue.take(sql, "died", clock()))
    clock.now += queue.LEASE
    async with world.running(well):
        await world.until(subject, "COMPLETED")
    assert any("without notice" in line for line in await world.us.log(subject))


async def lost(world: World, worker: str, *, boot: str = "") -> tuple[str, int]:
    """Submit a job that `worker` takes; return it, and the descriptor that holds the lock of the worker."""
    folder, store, clock = world.folder / "training", world.us.cloud.cloud.store, world.us.cloud.cloud.clock
    folder.mkdir(exist_ok=True)
    subject = await world.us.submit(model_version=worker)
    await store.write(lambda sql: queue.take(sql, worker, clock()))
    descriptor = lock.hold(folder, worker)
    if boot:
        lock.path_of(folder, worker).write_text(boot)
    return subject, descriptor


async def test_a_job_of_a_worker_that_ended_here_is_taken_at_once(world: World) -> None:
    subject, descriptor = await lost(world, "died")
    os.close(descriptor)
    async with world.running(well):
        await world.until(subject, "COMPLETED")
    assert [path.stem for path in (world.folder / "training").iterdir()] != ["died"]


async def test_a_job_whose_worker_ends_a_moment_later_is_taken_soon(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "LOOKS", (0.05,) * 400)
    subject, descriptor = await lost(world, "dying")
    process = lock.share(lock.path_of(world.folder / "training", "dying"))  # as the process around its program
    os.close(descriptor)
    async with world.running(well):
        other = await world.us.submit(model_version="other")
        await world.until(other, "COMPLETED")
        assert (await world.us.job(subject))["status"] == "IN_PROGRESS"
        os.close(process)
        await world.until(subject, "COMPLETED")


async def test_a_job_whose_worker_ends_just_before_the_last_look_is_taken(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, descriptor = await lost(world, "dying")
    process = [descriptor]
    look = lock.in_use

    def ends_first(folder: Path, worker: str) -> bool:
        while process:
            os.close(process.pop())
        return look(folder, worker)

    monkeypatch.setattr(lock, "in_use", ends_first)
    async with world.running(well):
        await world.until(subject, "COMPLETED")


@pytest.mark.parametrize("case", ["held", "of another boot", "of another worker", "without a lock"])
async def test_a_job_whose_worker_may_still_run_is_not_taken(
    world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setattr(runner_module, "LOOKS", (0.01,))
    subject, descriptor = await lost(world, "w", boot="another" if case == "of another boot" else "")
    path = lock.path_of(world.folder / "training", "w")
    if case == "of another worker":
        path.rename(lock.path_of(path.parent, "v"))
    if case == "without a lock":
        path.unlink()
    if case != "held":
        os.close(descriptor)
    async with world.running(well):
        other = await world.us.submit(model_version="other")
        await world.until(other, "COMPLETED")
        assert (await world.us.job(subject))["status"] == "IN_PROGRESS"
    clock.now += queue.LEASE
    async with world.running(well):
        await world.until(subject, "COMPLETED")
    if case == "held":
        os.close(descriptor)


async def test_a_database_that_does_not_renew_stops_the_job(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "MARGIN", queue.LEASE.total_seconds() - 0.3)
    monkeypatch.setattr(runner_module, "RETRY", 0.05)
    real = queue.renew

    def renew(sql: Any, *rest: Any) -> Any:
        real(sql, *rest)
        raise MachineError("the database is away", kind=ErrorKind.UNAVAILABLE)

    async with world.running(hang) as engine:
        subject = await world.us.submit()
        await world.until_logged(subject, "hanging")
        monkeypatch.setattr(queue, "renew", renew)
        world.us.cloud.cloud.events.notify(jobs.TOPIC, subject)
        with trio.fail_after(10):
            await engine.idle.wait()
        assert (await world.us.job(subject))["status"] == "IN_PROGRESS"  # until its lease ends


async def test_slots_and_turns(world: World) -> None:
    others = await tenant(world.us.cloud, "Others")
    await others.add("ok", (0, 100, 0))
    await others.add("bad", (0, 100, 0))
    together, started, most = trio.Event(), [], 0

    async def count(order: Order, sink: Sink) -> RunOutcome:
        nonlocal most
        started.append(order.id)
        most = max(most, len(engine.running))
        if most == 2:
            together.set()
        await together.wait()
        return await well(order, sink)

    ours = [await world.us.submit(model_version=str(number)) for number in range(4)]
    theirs = [await others.submit(model_version=str(number)) for number in range(2)]
    async with world.running(count, slots=2) as engine:
        for subject in ours:
            await world.until(subject, "COMPLETED")
        with world.us.cloud.cloud.events.listening(jobs.TOPIC) as listener, trio.fail_after(20):
            while (await others.job(theirs[-1]))["status"] != "COMPLETED":
                await listener.next()
    assert sorted(started) == sorted(ours + theirs)
    assert most == 2
    jobs_by_start = [await world.us.job(ours[0]), await others.job(theirs[0]), await world.us.job(ours[1])]
    times = [job["training_started"] for job in jobs_by_start]
    assert times == sorted(times)


async def test_a_custom_script(world: World) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name in ("script/model/training.py", "script/setup.py"):
            info = tarfile.TarInfo(name)
            info.size = 4
            tar.addfile(info, io.BytesIO(b"pass"))

    async def pieces() -> AsyncIterator[bytes]:
        yield archive.getvalue()

    values = {"organization_id": world.us.organization, "name": "script", "version": "1", "type": "ML_TRAINING"}
    packages = "viam.app.packages.v1.PackageService"
    await world.us.client.call(packages, "", "create_package", **values, pieces=pieces())
    async with world.running(well) as engine:
        subject = await world.us.call(
            TRAINING,
            "submit_custom_training_job",
            organization_id=world.us.organization,
            dataset_id=world.us.dataset,
            registry_item_id=f"{world.us.organization}:script",
            registry_item_version="latest",
            model_name="parts",
            model_version="1",
            arguments={"epochs": "3"},
        )
        await world.until(subject, "COMPLETED")
    (order,) = engine.orders
    assert order.module == "model.training"
    assert order.program == world.folder / "training" / subject / "program" / "script"
    assert order.arguments[-1] == "--epochs=3"
    assert order.readable == ()


def test_folders_of_ended_jobs_are_selected(tmp_path: Path) -> None:
    home = tmp_path / "jobs"
    assert folders(home) == []
    for name in ("old", "kept", ".probe"):
        (home / name / "dataset").mkdir(parents=True)
    files = ("machine-cloud.json", "worker.lock")
    for name in files:
        (home / name).touch()
    names = folders(home)
    (home / "started-meanwhile").mkdir()  # by a replica
    assert stale(home, names, {"kept", "elsewhere"}) == [home / "old"]
