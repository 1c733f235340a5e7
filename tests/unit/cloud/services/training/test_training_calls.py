"""Calls of MLTrainingService: submission with its refusals, lists, cancelling, deletion, logs."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from cloud.domain.permissions import audit
from cloud.domain.permissions.audit import AuditQuery
from cloud.domain.registry import items
from cloud.domain.training import jobs, queue
from cloud.domain.training.abilities import Abilities
from cloud.domain.training.pictures import pictures
from cloud.server.memory import APP, MemoryCloud
from cloud.values.limits import TRAINING_BYTES, TRAINING_JOBS, TRAINING_PICTURES, TRAINING_QUEUE
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import DATA, SETS, SYNC, at
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.services.training.world import TRAINING, Tenant, able, picture, tenant
from training.jobs.events import Log, Metric, Progress
from training.jobs.lifecycle import JobHappening


@pytest.fixture
async def us(cloud: MemoryCloud) -> Tenant:
    """Return an organization whose dataset suffices."""
    owner = await tenant(able(cloud))
    await owner.add("ok")
    await owner.add("bad")
    return owner


async def refused(kind: ErrorKind, call: Any) -> str:
    with pytest.raises(MachineError) as caught:
        await call
    assert caught.value.kind is kind, caught.value
    return str(caught.value)


async def test_a_submitted_job(us: Tenant) -> None:
    subject = await us.submit()
    job = await us.job(subject)
    assert (job["status"], job["model_type"], job["model_framework"]) == (
        "PENDING",
        "SINGLE_LABEL_CLASSIFICATION",
        "ONNX",
    )
    assert (job["tags"], job["model_name"], job["model_version"]) == (["ok", "bad"], "parts", "1")
    assert (job["dataset_id"], job["organization_id"], job["is_custom_job"]) == (us.dataset, us.organization, False)
    assert job.get("error_status") is None
    assert await us.log(subject) == ["the job is pending"]
    assert await us.cloud.cloud.store.read(jobs.unfinished) == {subject}


async def test_without_a_version_it_is_the_time(us: Tenant) -> None:
    assert (await us.job(await us.submit(model_version="")))["model_version"].startswith("2026-01-01T00-00-00")


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"model_type": 0}, ErrorKind.INVALID, "model type"),
        ({"model_type": 3}, ErrorKind.PRECONDITION, "'ok' has 0 pictures, 10 more needed"),
        ({"model_framework": 1}, ErrorKind.UNSUPPORTED, "tflite"),
        ({"tags": ["ok"]}, ErrorKind.INVALID, "needs 2"),
        ({"tags": [str(number) for number in range(501)]}, ErrorKind.INVALID, "training_labels"),
        ({"tags": ["ok", "b" * 100_000]}, ErrorKind.INVALID, "a label is not valid"),
        ({"tags": ["ok", "bad", "new"]}, ErrorKind.PRECONDITION, "'new' has 0 pictures, 10 more needed"),
        ({"model_name": "../../etc"}, ErrorKind.INVALID, "valid name"),
        ({"model_version": "../1"}, ErrorKind.INVALID, "valid version"),
        ({"model_version": "1" * 101}, ErrorKind.INVALID, "at most 100 letters"),
        ({"model_version": "latest"}, ErrorKind.INVALID, "valid version"),
        ({"dataset_id": "x"}, ErrorKind.NOT_FOUND, "dataset"),
    ],
)
async def test_refusals(us: Tenant, changes: dict[str, Any], kind: ErrorKind, text: str) -> None:
    assert text in await refused(kind, us.submit(**changes))
    assert await us.call(TRAINING, "list_training_jobs", organization_id=us.organization) == []


async def test_a_dataset_of_another_organization_does_not_exist(us: Tenant, cloud: MemoryCloud) -> None:
    others = await tenant(us.cloud, "Others")
    assert "no dataset" in await refused(ErrorKind.NOT_FOUND, us.submit(dataset_id=others.dataset))
    assert "no organization" in await refused(ErrorKind.NOT_FOUND, others.submit(organization_id=us.organization))
    subject = await us.submit()
    for method in ("get_training_job", "cancel_training_job", "delete_completed_training_job", "get_training_job_logs"):
        assert "no training job" in await refused(ErrorKind.NOT_FOUND, others.call(TRAINING, method, id=subject))


async def test_other_files_are_not_pictures(us: Tenant) -> None:
    ids = [await us.uploads.file(b"x", f"{number}.txt") for number in range(20)]
    await us.call(DATA, "add_binary_data_to_dataset_by_ids", binary_data_ids=ids, dataset_id=us.dataset)
    await us.submit()


async def test_suggestions_of_a_model_are_not_labels(us: Tenant) -> None:
    """A machine captures what its model is not sure about, with the model's results, into a dataset."""
    label = {"label": "ok", "confidence": 0.5}
    times = {"time_requested": at(1), "time_received": at(1)}
    uploaded = await us.uploads.machine.call(
        SYNC,
        "",
        "data_capture_upload",
        metadata={
            "part_id": us.uploads.part,
            "component_type": "rdk:service:vision",
            "component_name": "parts",
            "method_name": "CaptureAllFromCamera",
            "type": "BINARY_SENSOR",
            "mime_type": "image/png",
            "dataset_ids": [us.dataset],
        },
        sensor_contents=[
            {"metadata": {**times, "annotations": {"classifications": [label]}}, "binary": picture((1, 2, 3))}
        ],
    )
    stored = await us.cloud.cloud.store.read(lambda sql: pictures(sql, us.dataset, us.organization))
    suggestion = stored[-1].picture
    assert (suggestion.id, suggestion.labels, suggestion.suggested) == (uploaded["binary_data_id"], frozenset(), True)
    await us.call(DATA, "add_tags_to_binary_data_by_ids", tags=["bad"], binary_data_ids=[suggestion.id])
    stored = await us.cloud.cloud.store.read(lambda sql: pictures(sql, us.dataset, us.organization))
    assert stored[-1].picture.labels == {"bad"}


async def test_a_large_dataset(us: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.domain.training.pictures.TRAINING_PICTURES", _smaller(TRAINING_PICTURES, 19))
    assert "training_pictures" in await refused(ErrorKind.INVALID, us.submit())
    monkeypatch.undo()
    monkeypatch.setattr("cloud.domain.training.pictures.TRAINING_BYTES", _smaller(TRAINING_BYTES, 1000))
    assert "training_bytes" in await refused(ErrorKind.INVALID, us.submit())


def _smaller(limit: Any, value: int) -> Any:
    return type(limit)(limit.name, value, limit.unit, limit.of, limit.remedy, limit.kind)


@pytest.mark.parametrize("limit", [TRAINING_JOBS, TRAINING_QUEUE])
async def test_too_many_jobs(us: Tenant, monkeypatch: pytest.MonkeyPatch, limit: Any) -> None:
    monkeypatch.setattr(f"cloud.domain.training.jobs.{limit.name.upper()}", _smaller(limit, 2))
    first = await us.submit()
    await us.submit(model_version="2")
    assert limit.name in await refused(ErrorKind.EXHAUSTED, us.submit(model_version="3"))
    await us.call(TRAINING, "cancel_training_job", id=first)
    if limit is TRAINING_JOBS:
        await us.call(TRAINING, "delete_completed_training_job", id=first)
    await us.submit(model_version="3")


async def test_a_version_is_used_once(us: Tenant, clock: Clock) -> None:
    first = await us.submit()
    assert first in await refused(ErrorKind.EXISTS, us.submit())
    store = us.cloud.cloud.store
    taken = await store.write(lambda sql: queue.take(sql, "w", clock()))
    assert taken is not None
    await store.write(partial(queue.end, subject=first, worker="w", happening=JobHappening.COMPLETE, now=clock()))
    assert first in await refused(ErrorKind.EXISTS, us.submit())
    second = await us.submit(model_version="2")
    await us.call(TRAINING, "cancel_training_job", id=second)
    await us.submit(model_version="2")  # a canceled job has made no model


async def test_versions_in_the_registry_are_taken(us: Tenant, clock: Clock) -> None:
    async def pieces() -> Any:
        yield b"\x1f\x8b"

    values = {"organization_id": us.organization, "name": "parts", "version": "7", "type": "ML_MODEL"}
    packages = "viam.app.packages.v1.PackageService"
    await us.client.call(packages, "", "create_package", **values, pieces=pieces())
    assert "exists already" in await refused(ErrorKind.EXISTS, us.submit(model_version="7"))
    await us.submit(model_version="8")


async def test_a_module_is_not_a_model(us: Tenant, clock: Clock) -> None:
    await us.client.call(APP, "", "create_module", organization_id=us.organization, name="parts")
    assert "module" in await refused(ErrorKind.PRECONDITION, us.submit())


@pytest.mark.parametrize("abilities", [Abilities()])
async def test_without_an_engine(us: Tenant, abilities: Abilities) -> None:
    us.client = able(us.cloud, abilities).client(us.cloud.first.id)
    assert "--training-jobs" in await refused(ErrorKind.PRECONDITION, us.submit())
    script = {"registry_item_id": "x:y", "registry_item_version": "1"}
    values = {"organization_id": us.organization, "dataset_id": us.dataset, "model_name": "m", **script}
    call = us.call(TRAINING, "submit_custom_training_job", **values)
    assert "--training-python" in await refused(ErrorKind.PRECONDITION, call)
    assert "no dataset" in await refused(ErrorKind.NOT_FOUND, us.submit(dataset_id="missing"))
    call = us.call(TRAINING, "submit_custom_training_job", **{**values, "dataset_id": "missing"})
    assert "no dataset" in await refused(ErrorKind.NOT_FOUND, call)
    assert await us.call(TRAINING, "list_supported_containers") == {}


async def test_containers(us: Tenant) -> None:
    (container,) = (await us.call(TRAINING, "list_supported_containers")).values()
    assert container["key"] == "local"
    listed = await us.call(TRAINING, "list_containers", organization_id=us.organization)
    assert [entry["key"] for entry in listed] == ["local"]


async def custom(us: Tenant, **changes: Any) -> str:
    values = {
        "organization_id": us.organization,
        "dataset_id": us.dataset,
        "registry_item_id": f"{us.organization}:script",
        "registry_item_version": "1",
        "model_name": "parts",
        "model_version": "1",
    }
    return str(await us.call(TRAINING, "submit_custom_training_job", **{**values, **changes}))


async def test_a_custom_job(us: Tenant) -> None:
    async def pieces() -> Any:
        yield b"\x1f\x8b"

    values = {"organization_id": us.organization, "version": "1", "pieces": pieces()}
    packages = "viam.app.packages.v1.PackageService"
    await us.client.call(packages, "", "create_package", name="script", type="ML_TRAINING", **values)
    await us.client.call(APP, "", "create_module", organization_id=us.organization, name="other")
    job = await us.job(await custom(us, arguments={"epochs": "3"}))
    assert (job["is_custom_job"], job["registry_item_version"], job["arguments"]) == (True, "1", {"epochs": "3"})
    for changes, kind, text in (
        ({"registry_item_version": "2"}, ErrorKind.NOT_FOUND, "no version '2'"),
        ({"registry_item_id": f"{us.organization}:other"}, ErrorKind.INVALID, "module"),
        ({"registry_item_id": f"{us.organization}:none"}, ErrorKind.NOT_FOUND, "registry item"),
        ({"arguments": {"--x y": "1"}}, ErrorKind.INVALID, "valid argument"),
        ({"arguments": {"x": "y" * 40_000}}, ErrorKind.INVALID, "training_arguments"),
        ({"container_id": "c"}, ErrorKind.UNSUPPORTED, "without containers"),
        ({"container_version": "torch"}, ErrorKind.UNSUPPORTED, "without containers"),
    ):
        assert text in await refused(kind, custom(us, model_version="9", **changes))
    empty = await us.call(SETS, "create_dataset", name="empty", organization_id=us.organization)
    assert "no pictures" in await refused(ErrorKind.PRECONDITION, custom(us, dataset_id=empty, model_version="9"))


async def test_a_private_script_of_another_organization_does_not_exist(us: Tenant, clock: Clock) -> None:
    others = await tenant(us.cloud, "Others")
    create = partial(items.create, owner=others.organization, name="script", kind="ml_training", now=clock())
    await us.cloud.cloud.store.write(create)
    item = f"{others.organization}:script"
    assert "no registry item" in await refused(ErrorKind.NOT_FOUND, custom(us, registry_item_id=item))


async def test_lists(us: Tenant) -> None:
    first = await us.submit()
    second = await us.submit(model_version="2")
    await us.call(TRAINING, "cancel_training_job", id=first)

    async def listed(**status: Any) -> list[str]:
        values = {"organization_id": us.organization, **status}
        return [job["id"] for job in await us.call(TRAINING, "list_training_jobs", **values)]

    assert await listed() == [second, first]
    assert await listed(status="PENDING") == [second]
    assert await listed(status="CANCELED") == [first]
    assert await listed(status="FAILED") == []


async def test_cancelling_and_deletion(us: Tenant, clock: Clock) -> None:
    waiting, running = await us.submit(model_version="2"), await us.submit()
    await us.call(TRAINING, "cancel_training_job", id=waiting)
    assert (await us.job(waiting))["status"] == "CANCELED"
    assert "canceled" in await refused(ErrorKind.PRECONDITION, us.call(TRAINING, "cancel_training_job", id=waiting))
    store = us.cloud.cloud.store
    await store.write(lambda sql: queue.take(sql, "w", clock()))
    await us.call(TRAINING, "cancel_training_job", id=running)
    assert (await us.job(running))["status"] == "CANCELING"
    delete = "delete_completed_training_job"
    assert "cancel it first" in await refused(ErrorKind.PRECONDITION, us.call(TRAINING, delete, id=running))
    await store.write(partial(queue.end, subject=running, worker="w", happening=JobHappening.STOP, now=clock()))
    assert (await us.job(running))["status"] == "CANCELED"
    await us.call(TRAINING, delete, id=running)
    assert "no training job" in await refused(ErrorKind.NOT_FOUND, us.job(running))
    actions = [
        entry.action for entry in await store.read(lambda sql: audit.entries(sql, us.organization, AuditQuery()))
    ]
    assert {"submit_training_job", "cancel_training_job", delete} <= set(actions)


async def test_logs_come_in_pages(us: Tenant, clock: Clock) -> None:
    subject = await us.submit()
    events = [Log(str(number)) for number in range(1200)]
    store = us.cloud.cloud.store
    await store.write(lambda sql: jobs.append(sql, subject, events, clock()))
    await store.write(lambda sql: jobs.append(sql, subject, [Metric("loss", 0.5, 3), Progress(1, 2)], clock()))
    token, messages, pages = "", [], 0
    while pages == 0 or token:
        page = await us.call(TRAINING, "get_training_job_logs", id=subject, page_token=token)
        messages += [entry["message"] for entry in page["logs"]]
        token, pages = page["next_page_token"], pages + 1
    figures = ["loss 0.5 (step 3)", "1 of 2 done"]
    assert (pages, messages) == (3, ["the job is pending", *map(str, range(1200)), *figures])
    other = {"id": subject, "page_token": "x"}
    assert "page token" in await refused(ErrorKind.INVALID, us.call(TRAINING, "get_training_job_logs", **other))


async def test_logs_expire(us: Tenant, clock: Clock) -> None:
    old, unfinished = await us.submit(), await us.submit(model_version="2")
    await us.call(TRAINING, "cancel_training_job", id=old)
    store = us.cloud.cloud.store
    clock.now += timedelta(days=6.9)
    assert await store.write(lambda sql: jobs.expire(sql, clock())) == 0
    clock.now += timedelta(days=0.2)
    assert await store.write(lambda sql: jobs.expire(sql, clock())) == 2
    assert await us.log(old) == []
    assert (await us.job(old))["status"] == "CANCELED"
    assert await us.log(unfinished) == ["the job is pending"]
