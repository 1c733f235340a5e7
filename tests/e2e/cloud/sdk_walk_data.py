"""A walk through DataClient of the official Python SDK: each method, and its answer."""

from __future__ import annotations

import io
import urllib.request
from asyncio import to_thread
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import bson
import pytest
from grpclib import Status
from PIL import Image
from viam.app.data_client import DataClient
from viam.gen.app.data.v1 import data_pb2 as pb
from viam.proto.app.data import BinaryID, DeleteTabularFilter, Filter, Order, TagsFilter, TagsFilterType
from viam.utils import create_filter

from tests.e2e.cloud.sdk_seen import Seen, left_open
from tests.e2e.cloud.sdk_walk_app import START, Place

SENSOR: Final = "rdk:component:sensor"


def at_second(number: float) -> datetime:
    return START + timedelta(seconds=number)


def times(number: float) -> tuple[datetime, datetime]:
    return at_second(number), at_second(number + 0.5)


def picture(color: str) -> bytes:
    encoded = io.BytesIO()
    Image.new("RGB", (16, 8), color).save(encoded, "PNG")
    return encoded.getvalue()


def ids(result: Any) -> list[str]:
    return [file.metadata.binary_data_id for file in result]


async def _saved(data: DataClient, at: Place) -> None:
    """Keep an aggregation, which no method of the SDK does, and use it as prefix."""
    stub, headers = data._data_client, {"metadata": data._metadata}
    stages = [bson.encode({"$match": {"data.readings.t": {"$gte": 25}}})]
    created = await stub.CreateSavedQuery(
        pb.CreateSavedQueryRequest(organization_id=at.organization, name="hot", mql_binary=stages), **headers
    )
    await stub.UpdateSavedQuery(pb.UpdateSavedQueryRequest(id=created.id, name="hottest"), **headers)
    query = (await stub.GetSavedQuery(pb.GetSavedQueryRequest(id=created.id), **headers)).saved_query
    assert (query.name, list(query.mql_binary)) == ("hottest", stages)
    listed = await stub.ListSavedQueries(pb.ListSavedQueriesRequest(organization_id=at.organization), **headers)
    assert [each.id for each in listed.queries] == [created.id]
    counted = await data.tabular_data_by_mql(at.organization, [{"$count": "n"}], query_prefix_name="hottest")
    assert counted == [{"n": 2}]
    await stub.DeleteSavedQuery(pb.DeleteSavedQueryRequest(id=created.id), **headers)


async def readings(data: DataClient, seen: Seen, at: Place, part: str) -> None:
    source = (part, "thermometer", SENSOR, "Readings")
    assert await data.get_latest_tabular_data(*source) is None
    uploaded = [{"readings": {"t": 20.0 + number, "ok": True, "words": ["a", "b"]}} for number in range(7)]
    first = await data.tabular_data_capture_upload(
        uploaded, part, SENSOR, "thermometer", "Readings", [times(number) for number in range(7)], tags=["lab"]
    )
    assert first
    latest = await data.get_latest_tabular_data(*source)
    assert latest is not None
    moments = (latest[0].replace(tzinfo=UTC), latest[1].replace(tzinfo=UTC) > at_second(6))
    seen("get_latest_tabular_data", (*moments, latest[2]), (at_second(6), True, uploaded[6]))
    points = await data.export_tabular_data(*source)
    seen("tabular_data_capture_upload", [point.payload for point in points], uploaded)
    some = await data.export_tabular_data(*source, start_time=at_second(1), end_time=at_second(3))
    facts = (some[0].robot_name, some[0].tags, some[0].resource_api, some[0].part_id, some[0].location_id)
    seen("export_tabular_data", facts, ("tractor", ["lab"], SENSOR, part, at.location))
    assert [point.payload for point in some] == uploaded[1:3]
    await _pages(data, seen, uploaded, str(at.folder / "readings.txt"))
    query = "SELECT MAX(data.readings.t) AS top, COUNT(*) AS n FROM readings"
    seen("tabular_data_by_sql", await data.tabular_data_by_sql(at.organization, query), [{"top": 26.0, "n": 7}])
    await seen.refused(data.tabular_data_by_sql(at.organization, "DROP TABLE readings"), Status.INVALID_ARGUMENT)
    stages = [{"$match": {"data.readings.t": {"$gte": 21}}}, {"$group": {"_id": None, "n": {"$sum": 1}}}]
    seen("tabular_data_by_mql", await data.tabular_data_by_mql(at.organization, stages), [{"_id": None, "n": 6}])
    await seen.refused(data.tabular_data_by_mql(at.organization, [{"$out": "x"}]), Status.INVALID_ARGUMENT)
    stages = [{"$match": {"data.readings.t": {"$gte": 21}}}, {"$group": {"_id": None, "n": {"$sum": 1}}}]
    seen("tabular_data_by_mql", await data.tabular_data_by_mql(at.organization, stages), [{"_id": None, "n": 6}])
    await seen.refused(data.tabular_data_by_mql(at.organization, [{"$out": "x"}]), Status.INVALID_ARGUMENT)
    await _saved(data, at)
    with pytest.raises(NotImplementedError):  # raised by the SDK itself, without a call
        await data.delete_tabular_data_by_filter(None)
    seen.methods.add("delete_tabular_data_by_filter")
    narrow = DeleteTabularFilter(location_ids=[at.location], part_id=part, component_name="other")
    assert await data.delete_tabular_data(at.organization, 0, narrow) == 0
    seen("delete_tabular_data", await data.delete_tabular_data(at.organization, 0), 7)
    assert await data.export_tabular_data(*source) == []


async def _pages(data: DataClient, seen: Seen, uploaded: list[dict[str, Any]], file: str) -> None:
    with pytest.warns(DeprecationWarning, match="create_filter"):
        criteria = data.create_filter(component_name="thermometer", component_type=SENSOR, tags=["lab"])
    assert (criteria.component_name, list(criteria.tags_filter.tags)) == ("thermometer", ["lab"])
    rows, sizes, last = [], [], ""
    while True:
        with left_open():
            page, count, last = await data.tabular_data_by_filter(criteria, limit=3, last=last, dest=file)
        assert count == len(page)
        sizes.append(len(page))
        if not page:
            break
        rows += page
    seen("tabular_data_by_filter", ([row.data for row in rows], sizes), (uploaded, [3, 3, 1, 0]))
    assert rows[0].metadata.component_type == "sensor"
    _, count, _ = await data.tabular_data_by_filter(criteria, count_only=True)
    _, none, _ = await data.tabular_data_by_filter(create_filter(tags=["other"]), count_only=True)
    seen("create_filter", (count, none), (7, 0))
    turned, _, _ = await data.tabular_data_by_filter(criteria, sort_order=Order.ORDER_DESCENDING, limit=1)
    assert turned[0].data == uploaded[6]


async def files(data: DataClient, seen: Seen, at: Place, part: str) -> list[str]:
    """Upload four files, two images, a text and an empty one; return their ids."""
    path = at.folder / "notes.txt"
    path.write_bytes(b"notes")
    eye = {"component_type": "camera", "component_name": "eye", "method_name": "GetImages"}
    sets = await data.create_dataset("cats", at.organization)
    first = await data.binary_data_capture_upload(
        picture("red"), part, file_extension="png", tags=["red"], dataset_ids=[sets], data_request_times=times(0), **eye
    )
    second = await data.streaming_data_capture_upload(
        picture("blue"), part, "png", tags=["blue"], data_request_times=times(1), **eye
    )
    third = await data.file_upload_from_path(str(path), part, tags=["text"])
    fourth = await data.file_upload(part, b"", file_name="empty", file_extension=".bin")
    every = [first, second, third, fourth]
    cameras, count, _ = await data.binary_data_by_filter(Filter(component_type="camera"))
    seen("binary_data_capture_upload", (cameras[0].binary, ids(cameras)[0]), (picture("red"), first))
    seen("streaming_data_capture_upload", (cameras[1].binary, count), (picture("blue"), 2))
    assert cameras[0].metadata.capture_metadata.mime_type == "image/png"
    assert (cameras[0].metadata.capture_metadata.robot_name, list(cameras[0].metadata.dataset_ids)) == (
        "tractor",
        [sets],
    )
    (text,) = await data.binary_data_by_ids([third])
    seen("file_upload_from_path", (text.binary, text.metadata.file_name), (b"notes", "notes"))
    (empty,) = await data.binary_data_by_ids([fourth], include_binary_data=False)
    seen("file_upload", (empty.metadata.file_size_bytes, empty.metadata.file_ext), (0, ".bin"))
    old = BinaryID(file_id=first, organization_id=at.organization, location_id=at.location)
    (by_old,) = await data.binary_data_by_ids([old])
    seen("binary_data_by_ids", (by_old.binary, by_old.metadata.binary_data_id), (picture("red"), first))
    pages, last = [], ""
    while True:
        page, _, last = await data.binary_data_by_filter(
            limit=3, last=last, include_binary_data=False, sort_order=Order.ORDER_ASCENDING
        )
        assert all(file.binary == b"" for file in page)
        if not page:
            break
        pages.append(ids(page))
    seen("binary_data_by_filter", pages, [every[:3], every[3:]])
    _, count, _ = await data.binary_data_by_filter(Filter(mime_type=["image/png"]), count_only=True)
    assert count == 2
    url, expires = await data.create_binary_data_signed_url(third, 5)
    soon = expires.replace(tzinfo=UTC) - datetime.now(UTC)
    assert timedelta(minutes=4) < soon < timedelta(minutes=6)
    seen("create_binary_data_signed_url", await to_thread(_fetched, url), b"notes")
    await data.delete_dataset(sets)
    return every


def _fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return bytes(answer.read())


async def labels(data: DataClient, seen: Seen, part: str, every: list[str]) -> None:
    first, second, _, fourth = every
    await data.add_tags_to_binary_data_by_ids(["good"], [first, second])
    good, _, _ = await data.binary_data_by_filter(Filter(tags_filter=_tags("good")), include_binary_data=False)
    seen("add_tags_to_binary_data_by_ids", ids(good), [first, second])
    await data.add_tags_to_binary_data_by_filter(["seen"], Filter(part_id=part))
    before = await data.tags_by_filter()
    seen("add_tags_to_binary_data_by_filter", before, ["blue", "good", "red", "seen", "text"])
    removed = await data.remove_tags_from_binary_data_by_ids(["good"], [first])
    seen("remove_tags_from_binary_data_by_ids", removed, 1)
    seen("remove_tags_from_binary_data_by_filter", await data.remove_tags_from_binary_data_by_filter(["seen"]), 4)
    seen("tags_by_filter", await data.tags_by_filter(Filter(component_name="eye")), ["blue", "good", "red"])
    untagged = TagsFilter(type=TagsFilterType.TAGS_FILTER_TYPE_UNTAGGED)
    left, _, _ = await data.binary_data_by_filter(Filter(tags_filter=untagged), include_binary_data=False)
    assert ids(left) == [fourth]

    box = await data.add_bounding_box_to_image_by_id(first, "cat", 0, 0.1, 0.5, 0.6, confidence_score=0.9)
    (shown,) = (await data.binary_data_by_ids([first], include_binary_data=False))[0].metadata.annotations.bboxes
    corners = (shown.x_min_normalized, shown.y_min_normalized, shown.x_max_normalized, shown.y_max_normalized)
    got = (shown.id, shown.label, corners, shown.confidence)
    seen("add_bounding_box_to_image_by_id", got, (box, "cat", (0, 0.1, 0.5, 0.6), 0.9))
    await seen.refused(data.add_bounding_box_to_image_by_id(first, "cat", 0.5, 0.1, 0.5, 0.6), Status.INVALID_ARGUMENT)
    await data.update_bounding_box(first, box, "dog", 0, 0.1, 0.5, 0.7)
    (moved,) = (await data.binary_data_by_ids([first], include_binary_data=False))[0].metadata.annotations.bboxes
    seen("update_bounding_box", (moved.label, moved.y_max_normalized), ("dog", 0.7))
    boxed, _, _ = await data.binary_data_by_filter(Filter(bbox_labels=["dog"]), include_binary_data=False)
    assert ids(boxed) == [first]
    seen("bounding_box_labels_by_filter", await data.bounding_box_labels_by_filter(), ["dog"])
    await data.remove_bounding_box_from_image_by_id(box, first)
    seen("remove_bounding_box_from_image_by_id", await data.bounding_box_labels_by_filter(), [])


def _tags(*tags: str) -> TagsFilter:
    return TagsFilter(type=TagsFilterType.TAGS_FILTER_TYPE_MATCH_BY_OR, tags=tags)


async def datasets(data: DataClient, seen: Seen, at: Place, every: list[str]) -> None:
    owner = at.organization
    first, second = await data.create_dataset("one", owner), await data.create_dataset("two", owner)
    seen("create_dataset", [d.id for d in await data.list_datasets_by_organization_id(owner)], [first, second])
    await seen.refused(data.create_dataset("one", owner), Status.ALREADY_EXISTS)
    await data.add_binary_data_to_dataset_by_ids(every[:2], first)
    inside, _, _ = await data.binary_data_by_filter(Filter(dataset_id=first), include_binary_data=False)
    seen("add_binary_data_to_dataset_by_ids", ids(inside), every[:2])
    merged = await data.merge_datasets("all", owner, [first, second])
    both, _, _ = await data.binary_data_by_filter(Filter(dataset_id=merged), include_binary_data=False)
    seen("merge_datasets", ids(both), every[:2])
    await data.remove_binary_data_from_dataset_by_ids(every[:1], merged)
    left, _, _ = await data.binary_data_by_filter(Filter(dataset_id=merged), include_binary_data=False)
    seen("remove_binary_data_from_dataset_by_ids", ids(left), every[1:2])
    await data.rename_dataset(second, "zwei")
    (renamed,) = await data.list_dataset_by_ids([second])
    seen("rename_dataset", (renamed.name, renamed.organization_id), ("zwei", owner))
    names = [d.name for d in await data.list_datasets_by_organization_id(owner)]
    seen("list_datasets_by_organization_id", names, ["all", "one", "zwei"])
    await data.delete_dataset(second)
    seen("delete_dataset", [d.name for d in await data.list_datasets_by_organization_id(owner)], ["all", "one"])
    await seen.refused(data.list_dataset_by_ids([second]), Status.NOT_FOUND)
    seen("list_dataset_by_ids", [d.id for d in await data.list_dataset_by_ids([merged, first])], [merged, first])
    for dataset in (merged, first):
        await data.delete_dataset(dataset)


async def deletion(data: DataClient, seen: Seen, every: list[str]) -> None:
    seen("delete_binary_data_by_ids", await data.delete_binary_data_by_ids(every[3:]), 1)
    await seen.refused(data.delete_binary_data_by_filter(None), Status.INVALID_ARGUMENT)
    count = await data.delete_binary_data_by_filter(Filter(component_name="eye"))
    left, _, _ = await data.binary_data_by_filter(include_binary_data=False)
    seen("delete_binary_data_by_filter", (count, ids(left)), (2, every[2:3]))
    await seen.refused(data.binary_data_by_ids(every[:1]), Status.NOT_FOUND)
    assert await data.delete_binary_data_by_ids(every[2:3]) == 1


def unbuilt_arguments(at: Place, part: str) -> dict[str, tuple[Any, ...]]:
    """Return the arguments for the methods of DataClient that this cloud does not have."""
    here, now = at.organization, START
    return {
        "get_database_connection": (here,),
        "configure_database_user": (here, "Secret12"),
        "create_index": (here, 1, {"keys": {"a": 1}}),
        "list_indexes": (here, 1),
        "delete_index": (here, 1, "a"),
        "add_sequences_to_dataset": ("x", ["y"]),
        "remove_sequences_from_dataset": ("x", ["y"]),
        "create_sequence": (part, [], now, now),
        "get_sequence": ("x",),
        "update_sequence": ("x", [], ["tag"]),
        "delete_sequence": ("x",),
        "list_sequences": (here,),
        "sequences_by_dataset_id": ("x",),
        "get_sequence_binary_data": ("x",),
        "start_sequence_dataset_export": ("x",),
        "get_sequence_dataset_export": ("x",),
        "get_data_pipeline": ("x",),
        "list_data_pipelines": (here,),
        "create_data_pipeline": (here, "x", [], "* * * * *", False),
        "rename_data_pipeline": ("x", "y"),
        "delete_data_pipeline": ("x",),
        "list_data_pipeline_runs": ("x",),
    }
