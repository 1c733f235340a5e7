"""Tags, bounding boxes and datasets."""

from __future__ import annotations

from typing import Any

import pytest

from cloud.server.memory import MemoryCloud
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import PNG, SETS, Uploads

BOX = {"x_min_normalized": 0.1, "y_min_normalized": 0.2, "x_max_normalized": 0.5, "y_max_normalized": 0.6}


@pytest.fixture
def up(cloud: MemoryCloud, part: str) -> Uploads:
    return Uploads(cloud, part)


async def sets(up: Uploads, method: str, **arguments: Any) -> Any:
    return await up.owner.call(SETS, "", method, **arguments)


async def labels_of(up: Uploads, subject: str) -> Any:
    (item,) = (await up.ask("binary_data_by_ids", binary_data_ids=[subject]))["data"]
    return item["metadata"]


# ---- tags


async def test_tags_are_added_and_removed(up: Uploads) -> None:
    first, second = await up.picture(0), await up.picture(1)
    await up.ask("add_tags_to_binary_data_by_ids", binary_data_ids=[first], tags=["b", "a", "b"])
    await up.ask("add_tags_to_binary_data_by_filter", filter={"component_name": "eye"}, tags=["a"])
    assert (await labels_of(up, first))["capture_metadata"]["tags"] == ["a", "b"]
    assert await up.ask("tags_by_filter") == ["a", "b"]
    assert await up.ask("tags_by_filter", filter={"component_name": "other"}) == []
    old = [{"file_id": first}, {"file_id": second}]
    assert await up.ask("remove_tags_from_binary_data_by_ids", binary_ids=old, tags=["a", "c"]) == 2
    assert await up.ask("remove_tags_from_binary_data_by_filter", filter={"robot_name": "rover"}, tags=["b"]) == 1
    assert await up.ask("tags_by_filter") == []


async def test_one_missing_file_prevents_the_whole_change(up: Uploads) -> None:
    subject = await up.picture(0)
    with pytest.raises(MachineError) as caught:
        await up.ask("add_tags_to_binary_data_by_ids", binary_data_ids=[subject, "nothing"], tags=["a"])
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert await up.ask("tags_by_filter") == []


# ---- boxes


async def test_a_box_is_drawn_changed_and_removed(up: Uploads) -> None:
    subject = await up.picture(0)
    box = await up.ask("add_bounding_box_to_image_by_id", binary_data_id=subject, label="cat", confidence=0.5, **BOX)
    (item,) = (await labels_of(up, subject))["annotations"]["bboxes"]
    assert item == {"id": box, "label": "cat", "confidence": 0.5, **BOX}
    await up.ask("update_bounding_box", binary_data_id=subject, bbox_id=box, label="dog", x_max_normalized=0.9)
    (item,) = (await labels_of(up, subject))["annotations"]["bboxes"]
    assert item == {"id": box, "label": "dog", "confidence": 0.5, **BOX, "x_max_normalized": 0.9}
    assert await up.ask("bounding_box_labels_by_filter") == ["dog"]
    await up.ask("update_bounding_box", binary_id={"file_id": subject}, bbox_id=box, x_min_normalized=0.0)
    await up.ask("remove_bounding_box_from_image_by_id", binary_id={"file_id": subject}, bbox_id=box)
    assert (await labels_of(up, subject))["annotations"]["bboxes"] == []
    assert await up.ask("bounding_box_labels_by_filter") == []


@pytest.mark.parametrize(
    "change",
    [
        {"x_min_normalized": -0.1},
        {"x_max_normalized": 1.1},
        {"y_min_normalized": 0.6},
        {"y_max_normalized": 0.1},
        {"y_max_normalized": float("nan")},
        {"x_max_normalized": float("inf")},
        {"label": " "},
        {"confidence": 1.5},
        {"confidence": float("nan")},
    ],
)
async def test_an_invalid_box_is_refused(up: Uploads, change: dict[str, Any]) -> None:
    subject = await up.picture(0)
    with pytest.raises(MachineError) as caught:
        await up.ask("add_bounding_box_to_image_by_id", binary_data_id=subject, **{"label": "cat", **BOX, **change})
    assert caught.value.kind is ErrorKind.INVALID
    box = await up.ask("add_bounding_box_to_image_by_id", binary_data_id=subject, label="cat", **BOX)
    with pytest.raises(MachineError) as caught:
        await up.ask("update_bounding_box", binary_data_id=subject, bbox_id=box, **change)
    assert caught.value.kind is ErrorKind.INVALID
    (item,) = (await labels_of(up, subject))["annotations"]["bboxes"]
    assert item["label"] == "cat"


async def test_a_box_belongs_to_one_image(up: Uploads) -> None:
    first, second = await up.picture(0), await up.picture(1)
    box = await up.ask("add_bounding_box_to_image_by_id", binary_data_id=first, label="cat", **BOX)
    for method in ("update_bounding_box", "remove_bounding_box_from_image_by_id"):
        with pytest.raises(MachineError) as caught:
            await up.ask(method, binary_data_id=second, bbox_id=box)
        assert caught.value.kind is ErrorKind.NOT_FOUND


# ---- datasets


async def test_datasets_are_created_renamed_merged_and_deleted(up: Uploads) -> None:
    organization = up.cloud.first.organization
    ids = [await up.picture(number) for number in range(3)]
    first = await sets(up, "create_dataset", name="one", organization_id=organization)
    two = await sets(up, "create_dataset", name="two", organization_id=organization, type="BINARY_DATA")
    for name in ("one", "two"):
        with pytest.raises(MachineError) as caught:
            await sets(up, "create_dataset", name=name, organization_id=organization)
        assert caught.value.kind is ErrorKind.EXISTS
    await up.ask("add_binary_data_to_dataset_by_ids", dataset_id=first, binary_data_ids=ids[:2])
    await up.ask("add_binary_data_to_dataset_by_ids", dataset_id=two, binary_ids=[{"file_id": ids[1]}])
    await up.ask("add_binary_data_to_dataset_by_ids", dataset_id=two, binary_data_ids=[ids[1], ids[2]])
    merged = await sets(up, "merge_datasets", dataset_ids=[first, two], name="all", organization_id=organization)
    assert await up.ids(dataset_id=merged) == ids
    assert (await labels_of(up, ids[1]))["dataset_ids"] == sorted([first, two, merged])
    await up.ask("remove_binary_data_from_dataset_by_ids", dataset_id=merged, binary_data_ids=[ids[1], ids[1]])
    assert await up.ids(dataset_id=merged) == [ids[0], ids[2]]
    await sets(up, "rename_dataset", id=first, name="eins")
    listed = await sets(up, "list_datasets_by_organization_id", organization_id=organization)
    assert [element["name"] for element in listed] == ["all", "eins", "two"]
    (item,) = await sets(up, "list_datasets_by_ids", ids=[first])
    assert (item["id"], item["organization_id"], item["type"]) == (first, organization, "BINARY_DATA")
    await sets(up, "delete_dataset", id=first)
    with pytest.raises(MachineError) as caught:
        await sets(up, "list_datasets_by_ids", ids=[first])
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert await up.ids() == ids  # the files stay


async def test_a_deleted_file_is_removed_from_its_datasets(up: Uploads) -> None:
    organization = up.cloud.first.organization
    dataset = await sets(up, "create_dataset", name="one", organization_id=organization)
    subject = await up.picture(0, tags=["a"])
    await up.ask("add_binary_data_to_dataset_by_ids", dataset_id=dataset, binary_data_ids=[subject])
    await up.ask("add_bounding_box_to_image_by_id", binary_data_id=subject, label="cat", **BOX)
    await up.ask("delete_binary_data_by_ids", binary_data_ids=[subject])
    assert await up.ids(dataset_id=dataset) == []
    assert await up.picture(0, PNG) not in (subject, "")
    assert await up.ids(dataset_id=dataset) == []


async def test_deleting_an_organization_deletes_its_data(up: Uploads, machine: str) -> None:
    organization = up.cloud.first.organization
    await sets(up, "create_dataset", name="one", organization_id=organization)
    await up.picture(0, tags=["a"])
    with pytest.raises(MachineError) as caught:
        await up.cloud.app("delete_organization", organization_id=organization)
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert len(await up.ids()) == 1
    await up.cloud.app("delete_robot", id=machine)
    assert len(await up.ids()) == 1  # data outlive their machine
    await up.cloud.app("delete_location", location_id=up.cloud.first.location)
    await up.cloud.app("delete_organization", organization_id=organization)
    rows = await up.cloud.cloud.store.read(lambda sql: sql.rows("SELECT id FROM files"))
    assert rows == []


async def test_unsupported_options_are_refused_with_a_reason(up: Uploads) -> None:
    organization = up.cloud.first.organization
    calls = [
        (SETS, "create_dataset", {"name": "x", "organization_id": organization, "type": "SEQUENCE_DATA"}, "sequences"),
        (SETS, "start_sequence_dataset_export", {"dataset_id": "x"}, "sequences"),
        ("viam.app.data.v1.DataService", "get_database_connection", {"organization_id": organization}, "MongoDB"),
        ("viam.app.data.v1.DataService", "create_sequence", {"part_id": "x"}, "datasets"),
        ("viam.app.data.v1.DataService", "list_indexes", {"organization_id": organization}, "indexes"),
    ]
    for service, method, arguments, word in calls:
        with pytest.raises(MachineError, match=word) as caught:
            await up.owner.call(service, "", method, **arguments)
        assert caught.value.kind is ErrorKind.UNSUPPORTED
    assert await sets(up, "list_datasets_by_organization_id", organization_id=organization, type="SEQUENCE_DATA") == []
