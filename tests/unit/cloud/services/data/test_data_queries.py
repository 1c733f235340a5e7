"""Readings and files: queried by filter, page and id; deleted; retained for a number of days."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from cloud.domain.data import files, pages, readings, retention, sources
from cloud.domain.data.filters import DataFilter, DataScope
from cloud.domain.data.pages import Page
from cloud.domain.upkeep.named import OWNERS
from cloud.domain.upkeep.sweep import Swept, sweep
from cloud.server.memory import MemoryCloud
from cloud.services.common.base import UploadLimits
from cloud.services.data.data import DataService
from cloud.services.data.data_messages import DeleteTabularFilter, Filter
from cloud.store.sql import Row, Sql, Store, Value, Work
from cloud.values.author import KEY, Author
from cloud.values.times import now, stored
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import DATA, PNG, SETS, START, Uploads, at, blobs, days_later, piece


@pytest.fixture
def up(cloud: MemoryCloud, part: str) -> Uploads:
    return Uploads(cloud, part)


async def refused(up: Uploads, method: str, kind: ErrorKind, **arguments: Any) -> str:
    with pytest.raises(MachineError) as caught:
        await up.ask(method, **arguments)
    assert caught.value.kind is kind
    return str(caught.value)


# ---- filters


async def test_every_field_of_a_filter_applies_and_they_are_combined(up: Uploads, machine: str) -> None:
    first = up.cloud.first
    expected = await up.picture(10, tags=["x"])
    other = await up.picture(20, component_name="ear", component_type="audio_in", method_name="Read", mime_type="a/b")
    dataset = await up.owner.call(SETS, "", "create_dataset", name="d", organization_id=first.organization)
    await up.ask("add_binary_data_to_dataset_by_ids", dataset_id=dataset, binary_data_ids=[expected])
    box = {"x_min_normalized": 0.0, "y_min_normalized": 0.0, "x_max_normalized": 1.0, "y_max_normalized": 1.0}
    await up.ask("add_bounding_box_to_image_by_id", binary_data_id=expected, label="cat", **box)
    assert await up.ids() == [expected, other]
    choosing: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"component_name": "eye"}, {"component_name": "nose"}),
        ({"component_type": "camera"}, {"component_type": "sensor"}),
        ({"component_type": "rdk:component:camera"}, {"component_type": "rdk:component:arm"}),
        ({"method": "GetImages"}, {"method": "Nothing"}),
        ({"mime_type": ["image/png", "c/d"]}, {"mime_type": ["c/d"]}),
        ({"tags_filter": {"tags": ["x", "y"]}}, {"tags_filter": {"tags": ["y"]}}),
        ({"tags_filter": {"type": "TAGGED"}}, {"tags_filter": {"type": "MATCH_BY_OR", "tags": ["z"]}}),
        ({"bbox_labels": ["cat", "dog"]}, {"bbox_labels": ["dog"]}),
        ({"dataset_id": dataset}, {"dataset_id": "nothing"}),
        ({"interval": {"start": at(10), "end": at(20)}}, {"interval": {"start": at(20.1)}}),
    ]
    for some, none in choosing:
        assert await up.ids(**some) == [expected], some
        assert await up.ids(**none) == [], none
        assert await up.ids(**{"robot_name": "x", **some}) == []
    assert await up.ids(tags_filter={"type": "UNTAGGED"}) == [other]
    for both, none in (
        ({"robot_name": "rover"}, {"robot_name": "x"}),
        ({"robot_id": machine}, {"robot_id": "x"}),
        ({"part_name": "rover-main"}, {"part_name": "x"}),
        ({"part_id": up.part}, {"part_id": "x"}),
        ({"location_ids": [first.location, "x"]}, {"location_ids": ["x"]}),
        ({"organization_ids": [first.organization, "x"]}, {"organization_ids": ["x"]}),
    ):
        assert await up.ids(**both) == [expected, other], both
        assert await up.ids(**none) == [], none


async def test_the_same_fields_filter_readings(up: Uploads) -> None:
    await up.readings(piece(1, x=1.0), tags=["a"])
    await up.readings(piece(2, x=2.0), component_name="other")
    assert await up.values(component_name="s") == [{"x": 1.0}]
    assert await up.values(tags_filter={"tags": ["a"]}) == [{"x": 1.0}]
    assert await up.values(tags_filter={"type": "UNTAGGED"}) == [{"x": 2.0}]
    assert await up.values(interval={"start": at(2)}) == [{"x": 2.0}]
    assert await up.values(interval={"end": at(2)}) == [{"x": 1.0}]
    assert await up.values(component_type="rdk:component:sensor", method="Readings") == [{"x": 1.0}, {"x": 2.0}]
    for nothing in ({"mime_type": ["a/b"]}, {"bbox_labels": ["cat"]}, {"dataset_id": "d"}):
        assert await up.values(**nothing) == []


# ---- pages


@pytest.mark.parametrize("limit", [1, 3, 7, 50])
@pytest.mark.parametrize("order", ["ASCENDING", "DESCENDING", None])
@pytest.mark.parametrize("few", [2, 16])
async def test_pages_contain_everything_once_in_order_and_end_with_an_empty_page(
    up: Uploads, limit: int, order: str | None, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "FEW", few)
    for number in range(7):  # two at each time, from three sources
        await up.picture(number // 2, PNG + bytes([number]), component_name=f"eye{number % 3}")
    request: dict[str, Any] = {"limit": limit, **({"sort_order": order} if order else {})}
    results: list[Any] = []
    while (answer := await up.ask("binary_data_by_filter", data_request=request))["data"]:
        assert answer["count"] == len(answer["data"])
        results += answer["data"]
        request["last"] = answer["last"]
    assert answer["last"] == ""
    assert len({item["metadata"]["id"] for item in results}) == len(results) == 7
    times = [element["metadata"]["time_requested"] for element in results]
    assert times == sorted(times, reverse=order == "DESCENDING")


@pytest.mark.parametrize("few", [2, 16])
async def test_complete_rows_are_read_for_one_page_only(up: Uploads, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FEW", few)
    for number in range(9):
        await up.readings(piece(number, x=float(number)), component_name=f"s{number % 3}")
    scope = DataScope((up.cloud.first.organization,))

    def work(sql: Sql) -> tuple[list[float], int]:
        counting = Counting(sql)
        result = readings.query(counting, DataFilter(), scope, Page(limit=2))
        return [item.data["x"] for item in result], counting.whole

    assert await up.cloud.cloud.store.read(work) == ([0.0, 1.0], 2)


class Counting:
    """Count the rows that are read with their data."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self.whole = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sql, name)

    def rows(self, statement: str, *parameters: Value) -> list[Row]:
        result = self._sql.rows(statement, *parameters)
        self.whole += sum("data" in row for row in result)
        return result


async def test_a_count_returns_no_data(up: Uploads) -> None:
    await up.picture(0)
    await up.readings(piece(0, x=1.0), piece(1, x=1.0))
    answer = await up.ask("binary_data_by_filter", count_only=True)
    assert (answer["data"], answer["count"], answer["total_size_bytes"]) == ([], 1, len(PNG))
    answer = await up.ask("tabular_data_by_filter", count_only=True)
    assert (answer["data"], answer["count"]) == ([], 2)


async def test_content_is_returned_only_on_request(up: Uploads) -> None:
    subject = await up.picture(0)
    for content, expected in ((True, PNG), (False, b"")):
        (item,) = (await up.ask("binary_data_by_filter", include_binary=content))["data"]
        assert item["binary"] == expected
        (item,) = (await up.ask("binary_data_by_ids", binary_data_ids=[subject], include_binary=content))["data"]
        assert item["binary"] == expected


async def test_a_page_with_content_ends_at_the_message_limit(cloud: MemoryCloud, part: str) -> None:
    up = Uploads(MemoryCloud(replace(cloud.cloud, limits=UploadLimits(message=400)), cloud.first), part)
    ids = [await up.picture(number, bytes([number]) * 140) for number in range(4)]
    request: dict[str, Any] = {}
    results = []
    while (answer := await up.ask("binary_data_by_filter", data_request=request, include_binary=True))["data"]:
        assert len(answer["data"]) == 2
        results += [item["metadata"]["id"] for item in answer["data"]]
        request["last"] = answer["last"]
    assert results == ids
    said = await refused(up, "binary_data_by_ids", ErrorKind.EXHAUSTED, binary_data_ids=ids, include_binary=True)
    assert "CreateBinaryDataSignedURL" in said
    large = await up.picture(9, bytes(301))
    request = {"filter": {"interval": {"start": at(9)}}}
    await refused(up, "binary_data_by_filter", ErrorKind.EXHAUSTED, data_request=request, include_binary=True)
    assert await up.ids(interval={"start": at(9)}) == [large]


@pytest.mark.parametrize("last", ["x", "1", "1.x", "1.2.3", "١.٢", "9" * 50 + ".1"])
async def test_an_invalid_page_position_is_refused(up: Uploads, last: str) -> None:
    await refused(up, "binary_data_by_filter", ErrorKind.INVALID, data_request={"last": last})
    await refused(up, "tabular_data_by_filter", ErrorKind.INVALID, data_request={"last": last})


# ---- by id


async def test_old_and_new_ids_of_files_are_equivalent(up: Uploads) -> None:
    subject = await up.picture(0)
    old = {"file_id": subject, "organization_id": "whatever", "location_id": "whatever"}
    answer = await up.ask("binary_data_by_ids", binary_ids=[old], binary_data_ids=[subject])
    assert answer["count"] == len(answer["data"]) == 1
    await refused(up, "binary_data_by_ids", ErrorKind.INVALID)
    await refused(up, "binary_data_by_ids", ErrorKind.NOT_FOUND, binary_data_ids=[subject, "nothing"])


# ---- the newest, and exports


async def test_the_newest_file_is_the_one_captured_last(up: Uploads) -> None:
    source = {"part_id": up.part, "resource_name": "s", "method_name": "Readings", "resource_subtype": "sensor"}
    assert await up.ask("get_latest_tabular_data", **source) == {}
    await up.readings(piece(9, x=9.0))
    await up.readings(piece(5, x=5.0), tags=["late"])
    answer = await up.ask("get_latest_tabular_data", **source)
    assert (answer["payload"], answer["time_captured"]) == ({"x": 9.0}, at(9))
    assert answer["time_synced"] >= START
    assert await up.ask("get_latest_tabular_data", **{**source, "resource_subtype": "rdk:component:arm"}) == {}


async def test_an_export_has_all_readings_of_a_method_in_order(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.services.data.data_tabular.MAX_PAGE", 3)
    for number in reversed(range(10)):
        await up.readings(piece(number, x=float(number)), tags=["even"] if number % 2 == 0 else [])
    await up.readings(piece(3, x=-1.0), component_name="other")
    arguments = {
        "part_id": up.part,
        "resource_name": "s",
        "resource_subtype": "rdk:component:sensor",
        "method_name": "Readings",
    }

    async def exported(**more: Any) -> list[Any]:
        return [item async for item in up.owner.stream(DATA, "", "export_tabular_data", **arguments, **more)]

    result = await exported()
    assert [element["payload"]["x"] for element in result] == [float(number) for number in range(10)]
    assert result[0]["tags"] == ["even"]
    assert result[0]["resource_subtype"] == "rdk:component:sensor"
    assert all(first["time_captured"] < other["time_captured"] for first, other in pairwise(result))
    part = await exported(interval={"start": at(2), "end": at(4)})
    assert [entry["payload"]["x"] for entry in part] == [2.0, 3.0]


# ---- deleting


async def test_deleting_files_deletes_rows_and_content(up: Uploads) -> None:
    ids = [await up.picture(number, PNG + bytes([number]), tags=["t"]) for number in range(3)]
    await refused(up, "delete_binary_data_by_filter", ErrorKind.INVALID)
    await refused(up, "delete_binary_data_by_filter", ErrorKind.INVALID, filter={})
    assert await up.ask("delete_binary_data_by_ids", binary_data_ids=[ids[0], "nothing"]) == 1
    assert await up.ids() == ids[1:]
    assert len(await blobs(up.cloud)) == 3  # a backup of the database that refers to it may be restored
    await days_later(up.cloud)
    assert len(await blobs(up.cloud)) == 2
    assert await up.ask("delete_binary_data_by_filter", filter={"interval": {"start": at(2)}}) == 1
    organization = up.cloud.first.organization
    assert await up.ask("delete_binary_data_by_filter", filter={"organization_ids": [organization]}) == 1
    await days_later(up.cloud)
    assert await blobs(up.cloud) == set()
    assert await up.picture(0, PNG + b"\0", tags=["t"]) not in ids  # a deleted file may be uploaded again


async def test_data_of_a_filter_are_deleted_in_parts(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "AT_ONCE", 2)
    monkeypatch.setattr(files, "AT_ONCE", 2)
    for number in range(5):
        await up.readings(piece(number, x=1.0), component_name=f"s{number % 3}")
        await up.picture(number, PNG + bytes([number]))
    await up.readings(piece(9, x=2.0), component_name="kept")
    organization, writes = up.cloud.first.organization, Writes(up.cloud.cloud.store)
    owner = DataService(replace(up.cloud.cloud, store=writes), Author(KEY, up.cloud.first.id))
    chosen = DeleteTabularFilter(tags_filter=None, method="Readings", part_id=up.part)
    assert await owner.delete_tabular_data(organization, 0, chosen) == 6
    assert writes.count == 4  # 2 + 2 + 2, and none left
    assert await owner.delete_binary_data_by_filter(Filter(organization_ids=[organization])) == 5
    assert writes.count == 8
    assert await up.values() == []


class Writes:
    """Count the transactions that write."""

    def __init__(self, store: Store) -> None:
        self.read = store.read
        self._store = store
        self.count = 0

    async def write(self, work: Work[Any]) -> Any:
        self.count += 1
        return await self._store.write(work)


@pytest.mark.parametrize("descending", [False, True])
async def test_pages_within_a_range_of_time_continue_after_their_last_row(up: Uploads, descending: bool) -> None:
    for number in range(20):
        await up.readings(piece(number % 10, x=float(number)), component_name=f"s{number % 3}")
    inside = DataFilter(start=at(2), end=at(8))
    scope, store = DataScope((up.cloud.first.organization,)), up.cloud.cloud.store
    after: tuple[int, int] | None = None
    results: list[tuple[Any, int]] = []
    while records := await store.read(
        lambda sql: readings.query(sql, inside, scope, Page(after, 3, descending))  # noqa: B023 - ends at once
    ):
        results += [(record.requested, record.number) for record in records]
        after = stored(records[-1].requested), records[-1].number
    assert len(results) == 12
    assert results == sorted(results, reverse=descending)
    assert {moment for moment, _ in results} == {at(number) for number in range(2, 8)}
    before = Page((0, 0), 50, descending)  # a position outside of the range
    outside = await store.read(lambda sql: readings.query(sql, inside, scope, before))
    assert len(outside) == (0 if descending else 12)


async def test_readings_are_deleted_by_age_and_filter(up: Uploads, clock: Any) -> None:
    for number in range(4):
        await up.readings(piece(number * 86_400, x=float(number)), component_name=f"s{number % 2}")
    clock.now = START + timedelta(days=3, seconds=1)
    organization = up.cloud.first.organization

    async def delete(days: int, **fields: Any) -> Any:
        return await up.ask(
            "delete_tabular_data", organization_id=organization, delete_older_than_days=days, filter=fields
        )

    assert await delete(4) == await delete(4_000_000_000) == 0
    assert await delete(2, component_name="s0") == 1
    assert await up.values() == [{"x": 1.0}, {"x": 2.0}, {"x": 3.0}]
    assert await delete(1) == 2
    assert await delete(0, part_id="other") == 0
    assert await delete(0, part_id=up.part) == 1


# ---- retention


async def test_data_are_kept_for_the_configured_days(up: Uploads, clock: Any) -> None:
    store, organization = up.cloud.cloud.store, up.cloud.first.organization
    await up.readings(piece(-86_400 * 400, x=1.0))  # captured long before it arrived
    await up.picture(0)

    async def expire() -> int:
        return await store.write(lambda sql: retention.expire(sql, clock.now))

    clock.now += timedelta(days=1000)
    assert await expire() == 0  # no retention is set
    await store.write(lambda sql: retention.set_days(sql, organization, 1001))
    assert await expire() == 0
    await store.write(lambda sql: retention.set_days(sql, organization, 1000))
    clock.now += timedelta(minutes=1)
    assert await expire() == 2
    assert await expire() == 0
    assert await up.ids() == await up.values() == []
    assert len(await blobs(up.cloud)) == 1
    assert await sweep(store, up.cloud.cloud.blobs, now()) == Swept(0, total=1)  # a row for this blob might follow
    later = clock.now + timedelta(days=7.1)
    assert await sweep(store, up.cloud.cloud.blobs, later, age=-1) == Swept(1, total=1)
    assert await blobs(up.cloud) == set()


async def test_blobs_with_a_row_are_not_swept(up: Uploads) -> None:
    await up.picture(0)
    assert await days_later(up.cloud, 100) == Swept(0, total=1)
    assert len(await blobs(up.cloud)) == 1
    assert len(OWNERS) == 4  # captured files, segments, packages, releases


@pytest.mark.parametrize("days", [-1, 36_501])
async def test_invalid_numbers_of_days_are_refused(up: Uploads, days: int) -> None:
    with pytest.raises(MachineError) as caught:
        await up.cloud.cloud.store.write(lambda sql: retention.set_days(sql, up.cloud.first.organization, days))
    assert caught.value.kind is ErrorKind.INVALID


async def test_many_readings_expire_in_batches(up: Uploads, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    await up.readings(*(piece(number, x=1.0) for number in range(5)))
    store = up.cloud.cloud.store
    await store.write(lambda sql: retention.set_days(sql, up.cloud.first.organization, 1))
    clock.now += timedelta(days=2)
    counts = [await store.write(lambda sql: retention.expire(sql, clock.now)) for _ in range(4)]
    assert counts == [2, 2, 1, 0]


async def test_the_readings_of_a_source_are_returned_once(up: Uploads) -> None:
    for number in (3, 1, 2):
        await up.readings(piece(number, x=float(number)), piece(number, x=number + 0.5))
    store, scope = up.cloud.cloud.store, DataScope((up.cloud.first.organization,))
    (source,) = await store.read(lambda sql: sources.of_organization(sql, up.cloud.first.organization))
    own, after, values = DataFilter(source=source), pages.EARLIEST, []
    while page := await store.read(
        lambda sql: readings.query(sql, own, scope, Page(after, 4))  # noqa: B023 - ends at once
    ):
        values += [item.data["x"] for item in page]
        after = readings.position(page[-1])
    assert values == [1.0, 1.5, 2.0, 2.5, 3.0, 3.5]
    assert await store.read(lambda sql: readings.query(sql, DataFilter(), DataScope(), Page())) == []
    assert await store.read(lambda sql: readings.query(sql, DataFilter(), scope, Page(limit=1))) != []
