"""Data of another organization cannot be read by id, and roles are enforced: every method with every id."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest

from cloud.domain.organizations import saved_queries
from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.queries.bson import encode
from cloud.server.memory import APP, MemoryCloud
from cloud.services.data.data import DataService
from cloud.services.data.data_messages import Filter
from cloud.services.data.datasets import DatasetService
from cloud.values.author import Author
from rpc.api.client import ApiClient, methods_for
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import DATA, SETS, START, SYNC, Uploads, piece

SECRET = "of-the-other"
BOX = {"x_min_normalized": 0.0, "y_min_normalized": 0.0, "x_max_normalized": 1.0, "y_max_normalized": 1.0}
PUBLISHED = [
    (service, name)
    for service, rules in ((DATA, DataService.rules), (SETS, DatasetService.rules))
    for name in sorted(rules)
    if name in methods_for(service)
]


@dataclass
class World:
    cloud: MemoryCloud
    mine: ApiClient
    own: dict[str, str]  # ids of the caller's objects, by kind
    theirs: dict[str, str]


MATCH = encode({"$match": {"component_name": "mine"}})


async def fill(cloud: MemoryCloud, part: str, owner: str, organization: str, word: str) -> dict[str, str]:
    up = Uploads(cloud, part, owner)
    await up.readings(piece(0, secret=word), component_name=word)
    subject = await up.picture(0, word.encode(), tags=[word])
    box = await up.ask("add_bounding_box_to_image_by_id", binary_data_id=subject, label=word, **BOX)
    dataset = await up.owner.call(SETS, "", "create_dataset", name=word, organization_id=organization)
    await up.ask("add_binary_data_to_dataset_by_ids", dataset_id=dataset, binary_data_ids=[subject])
    query = await cloud.cloud.store.write(
        lambda sql: saved_queries.create(sql, organization, word, saved_queries.MQL, MATCH.hex(), START)
    )
    ids = {"file": subject, "box": box, "dataset": dataset, "query": query}
    return {**ids, "part": part, "organization": organization}


async def make(cloud: MemoryCloud, machine: str, part: str) -> World:
    store = cloud.cloud.store
    first = cloud.first
    other = await store.write(lambda sql: create_owner(sql, "Other", START))
    theirs = cloud.client(other.id)
    their_robot = await theirs.call(APP, "", "new_robot", name="theirs", location=other.location)
    their_part = (await theirs.call(APP, "", "get_robot_parts", robot_id=their_robot))[0]["id"]
    own = await fill(cloud, part, first.id, first.organization, "mine")
    their = await fill(cloud, their_part, other.id, other.organization, SECRET)
    own |= {"location": first.location, "robot": machine}
    their |= {"location": other.location, "robot": their_robot}
    return World(cloud, cloud.client(), own, their)


@pytest.fixture
async def world(cloud: MemoryCloud, machine: str, part: str) -> World:
    return await make(cloud, machine, part)


def arguments(name: str, ids: dict[str, str], filter: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    """Return arguments for a method that refer to `ids`."""
    values: dict[str, Any] = {
        "data_request": {"filter": filter, "limit": 100},
        "filter": filter,
        "include_binary": True,
        "binary_data_ids": [ids["file"]],
        "binary_data_id": ids["file"],
        "bbox_id": ids["box"],
        "dataset_id": ids["dataset"],
        "dataset_ids": [ids["dataset"]],
        "organization_id": ids["organization"],
        "part_id": ids["part"],
        "id": ids["query" if "saved" in name else "dataset"],
        "mql_binary": [MATCH],
        "ids": [ids["dataset"]],
        "tags": ["new"],
        "label": "new",
        "name": "new",
        "resource_name": "s",
        "resource_subtype": "sensor",
        "method_name": "Readings",
        "sql_query": "SELECT * FROM readings",
        **BOX,
    }
    if name == "delete_tabular_data":
        values["filter"] = {"part_id": ids["part"]}
    present = methods_for(DATA if name in DataService.rules else SETS)[name].arguments
    return {key: value for key, value in values.items() if key in present}


async def outcome(client: ApiClient, service: str, name: str, value: dict[str, Any]) -> tuple[ErrorKind | None, str]:
    """Return the kind of the error, if any, and the whole answer as text."""
    try:
        if name == "export_tabular_data":
            return None, str([item async for item in client.stream(service, "", name, **value)])
        return None, str(await client.call(service, "", name, **value))
    except MachineError as error:
        return error.kind, str(error)


async def state(world: World) -> list[Any]:
    """Return all data rows."""
    tables = ("readings", "files", "file_tags", "file_labels", "datasets", "dataset_files", "saved_queries")
    return await world.cloud.cloud.store.read(lambda sql: [sql.rows(f"SELECT * FROM {table}") for table in tables])


ID_METHODS = [item for item in PUBLISHED if not item[1].endswith("by_filter")]


@pytest.mark.parametrize(("service", "name"), ID_METHODS)
async def test_objects_of_another_organization_are_not_found(world: World, service: str, name: str) -> None:
    before = await state(world)
    theirs = arguments(name, world.theirs, {})
    kind, said = await outcome(world.mine, service, name, theirs)
    nothing = {kind: f"no-{kind}" for kind in world.theirs}
    unknown, words = await outcome(world.mine, service, name, arguments(name, nothing, {}))
    if name == "delete_binary_data_by_ids":
        assert (kind, said) == (unknown, words) == (None, "0")
    else:
        assert kind is unknown is ErrorKind.NOT_FOUND
        for what, subject in world.theirs.items():
            said = said.replace(subject, f"no-{what}")
        assert said == words
    assert await state(world) == before


@pytest.mark.parametrize("name", [name for _, name in PUBLISHED if name.endswith("by_filter")])
@pytest.mark.parametrize("key", ["organization_ids", "location_ids", "robot_id", "part_id", "dataset_id"])
async def test_filters_find_nothing_of_another_organization(world: World, name: str, key: str) -> None:
    before = await state(world)
    value = world.theirs[key.removesuffix("_ids").removesuffix("_id")]
    expected = {key: [value] if key.endswith("s") else value}
    _, said = await outcome(world.mine, DATA, name, arguments(name, world.own, expected))
    assert SECRET not in said
    assert await state(world) == before


async def plotted_numbers(world: World, author: Author, fields: tuple[str, ...] = (), **filter_: Any) -> set[float]:
    """Return the last number of each field that a caller may plot."""
    plotted = await DataService(world.cloud.cloud, author).tabular_series(Filter(**filter_), fields)
    return {field.last for each in (plotted.series if plotted else ()) for field in each.fields}


async def upload_levels(world: World) -> None:
    """Upload the level 1 of the caller's organization, and 2 of the other."""
    for number, ids in enumerate((world.own, world.theirs), 1):
        await Uploads(world.cloud, ids["part"]).readings(*(piece(second, level=number) for second in range(5)))


@pytest.mark.parametrize("key", ["organization_ids", "location_ids", "robot_id", "part_id", "component_name", ""])
async def test_plots_show_nothing_of_another_organization(world: World, key: str) -> None:
    await upload_levels(world)
    subject = "s" if key == "component_name" else world.theirs.get(key.removesuffix("_ids").removesuffix("_id"), "")
    chosen: dict[str, Any] = {key: [subject] if key.endswith("s") else subject} if key else {}
    expected = {1.0} if key in ("component_name", "") else set()
    author = Author("api-key", world.cloud.first.id)
    assert await plotted_numbers(world, author, **chosen) == expected
    assert await plotted_numbers(world, author, ("level",), **chosen) == expected


async def test_a_machine_plots_no_data(world: World) -> None:
    await upload_levels(world)
    assert await plotted_numbers(world, Author("robot-secret", world.own["part"])) == set()


@pytest.mark.parametrize("seed", range(4))
async def test_mixed_ids_find_nothing_of_another_organization(world: World, seed: int) -> None:
    chance = random.Random(seed)
    changing = [item for item in PUBLISHED if not item[1].startswith(("delete", "remove"))]
    for _ in range(60):
        service, name = chance.choice(changing)
        ids = {kind: chance.choice((world.theirs, world.own))[kind] for kind in world.own}
        expected = chance.choice(({}, {"organization_ids": [ids["organization"]], "dataset_id": ids["dataset"]}))
        _, said = await outcome(world.mine, service, name, arguments(name, ids, expected))
        assert SECRET not in said, (service, name, ids)
    rows = await world.cloud.cloud.store.read(
        lambda sql: sql.rows(
            """
            SELECT dataset_id FROM dataset_files JOIN files ON files.id = file_id
            JOIN data_sources ON data_sources.number = source JOIN datasets ON datasets.id = dataset_id
            WHERE data_sources.organization_id <> datasets.organization_id
            """
        )
    )
    assert rows == []


async def test_data_cannot_be_added_to_a_dataset_of_another_organization(world: World) -> None:
    for dataset, subject in (("own", "theirs"), ("theirs", "own")):
        created, first = getattr(world, dataset)["dataset"], getattr(world, subject)["file"]
        for method in ("add_binary_data_to_dataset_by_ids", "remove_binary_data_from_dataset_by_ids"):
            if (dataset, method[:3]) == ("own", "rem"):
                continue  # removing a file that is not in the dataset changes nothing
            with pytest.raises(MachineError) as caught:
                await world.mine.call(DATA, "", method, dataset_id=created, binary_data_ids=[first])
            assert caught.value.kind is ErrorKind.NOT_FOUND
    machine = world.cloud.client(world.own["part"], "robot-secret")
    upload = {"part_id": world.own["part"], "dataset_ids": [world.theirs["dataset"]], "contents": []}
    with pytest.raises(MachineError) as caught:
        await world.mine.call(SYNC, "", "file_upload", **upload)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    stored = await machine.call(SYNC, "", "file_upload", **upload)  # what a machine captured is kept, elsewhere
    files = await world.mine.call(DATA, "", "binary_data_by_ids", binary_data_ids=[stored["file_id"]])
    assert files["data"][0]["metadata"]["dataset_ids"] == []
    with pytest.raises(MachineError) as caught:
        await world.mine.call(
            SETS,
            "",
            "merge_datasets",
            dataset_ids=[world.own["dataset"], world.theirs["dataset"]],
            name="both",
            organization_id=world.own["organization"],
        )
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_a_key_of_two_organizations_does_not_mix_their_data(world: World) -> None:
    grants = [Grant("owner", "organization", ids["organization"]) for ids in (world.own, world.theirs)]
    both = await world.cloud.cloud.store.write(
        lambda sql: create_key(sql, world.own["organization"], "both", grants, START)[0]
    )
    client = world.cloud.client(both)
    for created, subject in ((world.own, world.theirs), (world.theirs, world.own)):
        with pytest.raises(MachineError) as caught:
            await client.call(
                DATA,
                "",
                "add_binary_data_to_dataset_by_ids",
                dataset_id=created["dataset"],
                binary_data_ids=[subject["file"]],
            )
        assert caught.value.kind is ErrorKind.NOT_FOUND
        with pytest.raises(MachineError) as caught:
            await client.call(
                SETS,
                "",
                "merge_datasets",
                dataset_ids=[world.own["dataset"], world.theirs["dataset"]],
                name="both",
                organization_id=created["organization"],
            )
        assert caught.value.kind is ErrorKind.NOT_FOUND
        contents = [{"binary": b"x"}]
        metadata = {"part_id": created["part"], "dataset_ids": [subject["dataset"]], "type": "BINARY_SENSOR"}
        with pytest.raises(MachineError) as caught:
            await client.call(SYNC, "", "data_capture_upload", metadata=metadata, sensor_contents=contents)
        assert caught.value.kind is ErrorKind.NOT_FOUND
    assert set(await Uploads(world.cloud, "", both).ids()) == {world.own["file"], world.theirs["file"]}


OWNERS_ONLY = {
    "delete_tabular_data",
    "delete_binary_data_by_ids",
    "delete_binary_data_by_filter",
    "delete_dataset",
}


@pytest.mark.parametrize(("service", "name"), PUBLISHED)
async def test_an_operator_reads_and_labels_but_does_not_delete(world: World, service: str, name: str) -> None:
    organization = world.own["organization"]
    grant = Grant("operator", "organization", organization)
    key = await world.cloud.cloud.store.write(lambda sql: create_key(sql, organization, "guard", [grant], START)[0])
    expected = {"organization_ids": [organization]}
    kind, said = await outcome(world.cloud.client(key), service, name, arguments(name, world.own, expected))
    if name in OWNERS_ONLY:
        assert kind is ErrorKind.PERMISSION
    else:
        assert kind is None, said


@pytest.mark.parametrize(("service", "name"), PUBLISHED)
async def test_a_machine_reads_no_data(world: World, service: str, name: str) -> None:
    machine = world.cloud.client(world.own["part"], "robot-secret")
    kind, said = await outcome(machine, service, name, arguments(name, world.own, {"part_id": world.own["part"]}))
    assert kind is not None or not any(word in said for word in ("mine", world.own["file"])), (kind, said)


@pytest.mark.parametrize("kind", ["robot", "location"])
async def test_a_key_for_one_machine_sees_only_its_data(world: World, kind: Any) -> None:
    first = world.cloud.first
    hall = await world.mine.call(
        APP, "", "create_location", organization_id=first.organization, name="Hall", parent_location_id=first.location
    )
    robot = await world.mine.call(APP, "", "new_robot", name="second", location=hall["id"])
    part = (await world.mine.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
    up = Uploads(world.cloud, part)
    seen = await up.picture(5, b"second")
    await upload_levels(world)
    await up.readings(piece(0, level=3))
    grant = Grant("operator", kind, {"robot": robot, "location": hall["id"]}[kind])
    key = await world.cloud.cloud.store.write(
        lambda sql: create_key(sql, first.organization, "guard", [grant], START)[0]
    )
    guard = Uploads(world.cloud, part, key)
    assert await guard.ids() == [seen]
    assert await plotted_numbers(world, Author("api-key", key)) == {3.0}
    with pytest.raises(MachineError) as caught:
        await guard.ask("binary_data_by_ids", binary_data_ids=[world.own["file"]])
    assert caught.value.kind is ErrorKind.NOT_FOUND
    upper = Grant("operator", "location", first.location)
    key = await world.cloud.cloud.store.write(
        lambda sql: create_key(sql, first.organization, "guard", [upper], START)[0]
    )
    assert await plotted_numbers(world, Author("api-key", key)) == {1.0, 3.0}
    assert await Uploads(world.cloud, part, key).ids() == [world.own["file"], seen]  # covered by the role above
