"""The key of a running training script reads the dataset of its job, and can do nothing else."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pytest

from cloud.domain.training import job_keys, queue
from cloud.domain.training.jobs import cancel
from cloud.server.memory import APP, MemoryCloud
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import DATA, SETS
from tests.unit.cloud.services.training.world import TRAINING, Tenant, able, tenant
from training.jobs.lifecycle import JobHappening

PACKAGES: Final = "viam.app.packages.v1.PackageService"
ROBOT: Final = "viam.app.v1.RobotService"
REFUSED: Final = (ErrorKind.NOT_FOUND, ErrorKind.PERMISSION, ErrorKind.UNAUTHENTICATED)


@dataclass
class World:
    us: Tenant
    client: ApiClient  # with the key of the job
    job: str
    key: str
    own: list[str]  # files of the dataset
    ids: dict[str, str]  # everything that must not be reached

    async def call(self, service: str, method: str, /, **arguments: Any) -> Any:
        return await self.client.call(service, "", method, **arguments)


@pytest.fixture
async def world(cloud: MemoryCloud) -> World:
    us = await tenant(able(cloud))
    await us.add("ok")
    await us.add("bad")
    own = await us.uploads.ids(dataset_id=us.dataset)
    inside, us.dataset = us.dataset, await us.call(SETS, "create_dataset", name="b", organization_id=us.organization)
    await us.add("secret", number=1)
    other, us.dataset = us.dataset, inside
    theirs = await tenant(us.cloud, "Others")
    await theirs.add("theirs", number=1)
    job, store = await us.submit(), cloud.cloud.store

    def start(sql: Any) -> str:
        queue.take(sql, "w", cloud.cloud.clock())
        return job_keys.create(sql, job, us.organization, cloud.cloud.clock())[0]

    key = await store.write(start)
    part = us.uploads.part
    robot = (await us.call(APP, "get_robot_part", id=part))["part"]["robot"]
    ids = {
        "organization": us.organization,
        "part": part,
        "robot": robot,
        "location": cloud.first.location,
        "dataset": other,
        "theirs": theirs.dataset,
        "file": (await us.uploads.ids(dataset_id=other))[0],
        "their file": (await theirs.uploads.ids(dataset_id=theirs.dataset))[0],
        "job": job,
        "key": key,
        "own": own[0],
        "own dataset": inside,
        "owner": cloud.first.id,
    }
    return World(us, us.cloud.client(key), job, key, own, ids)


async def test_it_reads_its_dataset(world: World) -> None:
    page = await world.call(DATA, "binary_data_by_filter", data_request={"limit": 50}, include_binary=True)
    assert sorted(entry["metadata"]["binary_data_id"] for entry in page["data"]) == sorted(world.own)
    assert all(entry["binary"] for entry in page["data"])
    listed = await world.call(DATA, "binary_data_by_ids", binary_data_ids=world.own[:3], include_binary=True)
    assert [entry["metadata"]["binary_data_id"] for entry in listed["data"]] == world.own[:3]


BOX: Final = {"x_max_normalized": 1.0, "y_max_normalized": 1.0}
ATTEMPTS: Final[list[tuple[str, str, dict[str, Any]]]] = [
    (DATA, "binary_data_by_ids", {"binary_data_ids": ["file"]}),
    (DATA, "binary_data_by_ids", {"binary_data_ids": ["their file"]}),
    (DATA, "binary_data_by_ids", {"binary_data_ids": ["own", "file"]}),
    (DATA, "create_binary_data_signed_url", {"binary_data_id": "own"}),
    (DATA, "add_tags_to_binary_data_by_ids", {"binary_data_ids": ["own"], "tags": ["x"]}),
    (DATA, "remove_tags_from_binary_data_by_ids", {"binary_data_ids": ["own"], "tags": ["ok"]}),
    (DATA, "add_bounding_box_to_image_by_id", {"binary_data_id": "own", "label": "x", **BOX}),
    (DATA, "add_binary_data_to_dataset_by_ids", {"binary_data_ids": ["file"], "dataset_id": "own dataset"}),
    (DATA, "remove_binary_data_from_dataset_by_ids", {"binary_data_ids": ["own"], "dataset_id": "own dataset"}),
    (DATA, "tabular_data_by_sql", {"organization_id": "organization", "sql_query": "SELECT 1"}),
    (DATA, "delete_tabular_data", {"organization_id": "organization", "delete_older_than_days": 0}),
    (SETS, "list_datasets_by_organization_id", {"organization_id": "organization"}),
    (SETS, "rename_dataset", {"id": "own dataset", "name": "x"}),
    (SETS, "delete_dataset", {"id": "own dataset"}),
    (SETS, "create_dataset", {"organization_id": "organization", "name": "x"}),
    (TRAINING, "submit_training_job", {"organization_id": "organization", "dataset_id": "own dataset"}),
    (TRAINING, "get_training_job", {"id": "job"}),
    (TRAINING, "get_training_job_logs", {"id": "job"}),
    (TRAINING, "cancel_training_job", {"id": "job"}),
    (TRAINING, "list_training_jobs", {"organization_id": "organization"}),
    (PACKAGES, "list_packages", {"organization_id": "organization"}),
    (APP, "list_keys", {"org_id": "organization"}),
    (APP, "rotate_key", {"id": "owner"}),
    (APP, "rotate_key", {"id": "key"}),
    (APP, "delete_key", {"id": "owner"}),
    (APP, "list_robots", {"location_id": "location"}),
    (APP, "get_robot_part", {"id": "part"}),
    (APP, "get_robot_part_logs", {"id": "part"}),
    (APP, "new_robot", {"name": "x", "location": "location"}),
    (APP, "update_organization", {"organization_id": "organization", "name": "x"}),
    (APP, "list_organization_members", {"organization_id": "organization"}),
    (APP, "create_location", {"organization_id": "organization", "name": "x"}),
    (ROBOT, "config", {"id": "part"}),
    (ROBOT, "certificate", {"id": "part"}),
]
"""Calls with names of `World.ids`. Each must be refused."""


def _named(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [ids.get(entry, entry) for entry in value]
    return ids.get(value, value) if isinstance(value, str) else value


async def test_everything_else_is_refused(world: World) -> None:
    done = []
    for service, method, arguments in ATTEMPTS:
        try:
            await world.call(service, method, **{name: _named(value, world.ids) for name, value in arguments.items()})
        except MachineError as error:
            if error.kind not in REFUSED:
                done.append((method, arguments, str(error)))
        else:
            done.append((method, arguments, "accepted"))
    assert done == []
    assert await world.us.uploads.ids(dataset_id=world.ids["own dataset"]) == world.own


async def test_lists_are_empty(world: World) -> None:
    for dataset in (world.ids["dataset"], world.ids["theirs"]):
        page = await world.call(DATA, "binary_data_by_filter", data_request={"filter": {"dataset_id": dataset}})
        assert (page["data"], page["count"]) == ([], 0)
    for filters in ({"tags_filter": {"tags": ["secret"]}}, {"organization_ids": ["x"]}):
        page = await world.call(DATA, "binary_data_by_filter", data_request={"filter": filters})
        assert page["data"] == []
    for method, arguments in (
        ("list_organizations", {}),
        ("list_locations", {"organization_id": world.us.organization}),
        ("list_machine_summaries", {"organization_id": world.us.organization}),
        ("list_registry_items", {"organization_id": world.us.organization}),
    ):
        with suppress(MachineError):
            assert await world.call(APP, method, **arguments) == [], method
    with suppress(MachineError):
        assert await world.call(SETS, "list_datasets_by_ids", ids=[world.ids["own dataset"]]) == []
    deleted = await world.call(DATA, "delete_binary_data_by_filter", filter={"dataset_id": world.ids["own dataset"]})
    assert deleted in (0, {"deleted_count": 0})
    deleted = await world.call(DATA, "delete_binary_data_by_ids", binary_data_ids=[world.own[0]])
    assert deleted in (0, {"deleted_count": 0})
    assert await world.us.uploads.ids(dataset_id=world.ids["own dataset"]) == world.own


@pytest.mark.parametrize("how", ["end", "lost", "given back", "canceled", "deleted by an owner"])
async def test_it_ends_with_the_start_of_the_job(world: World, how: str) -> None:
    cloud = world.us.cloud.cloud

    def end(sql: Any) -> None:
        if how == "end":
            queue.end(sql, world.job, "w", JobHappening.FAIL, cloud.clock(), reason="x")
        elif how == "lost":
            queue.recover(sql, cloud.clock(), ["w"])
        elif how == "given back":
            queue.give_back(sql, world.job, "w", cloud.clock())
        else:
            cancel(sql, world.job, cloud.clock())
            queue.end(sql, world.job, "w", JobHappening.STOP, cloud.clock())

    if how == "deleted by an owner":
        await world.us.call(APP, "delete_key", id=world.key)
    else:
        await cloud.store.write(end)
    page = await world.call(DATA, "binary_data_by_filter", include_binary=True)
    assert page["data"] == []
    with pytest.raises(MachineError):
        await world.call(DATA, "binary_data_by_ids", binary_data_ids=world.own[:1])
