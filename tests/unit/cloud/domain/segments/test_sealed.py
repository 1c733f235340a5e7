"""Readings in segments: each call answers as if all were rows of the database, whatever is sealed in between."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
import trio

from cloud.blobs import sizes
from cloud.domain.data import readings, retention
from cloud.domain.data.segments import listed, plotting, sealing
from cloud.domain.data.segments.columns import MAX_DEPTH, Columns, SegmentRow
from cloud.domain.data.segments.parquet import written
from cloud.domain.organizations.first import create_owner
from cloud.domain.upkeep.identity import bind
from cloud.domain.upkeep.named import named, sample
from cloud.domain.upkeep.sweep import sweep
from cloud.server import segment_nodes
from cloud.server.memory import MemoryCloud
from cloud.server.segment_nodes import seal_all
from cloud.services.data.data import DataService
from cloud.services.data.data_messages import Filter
from cloud.store.sql import Sql
from cloud.values.author import KEY, Author
from cloud.values.times import now
from nursery_graph import Restart
from schema.errors import ErrorKind, MachineError
from support.worker import Worker
from tests.unit.cloud.captured import DATA, Uploads, at, piece
from tests.unit.cloud.conftest import BOTH, Clock

HOUR = timedelta(hours=1)


@pytest.fixture
def up(cloud: MemoryCloud, part: str) -> Uploads:
    return Uploads(cloud, part)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make segments of a few readings, in row groups of fewer."""
    monkeypatch.setattr(sealing, "MOST", 7)
    monkeypatch.setattr(sealing, "SOME", 1)
    monkeypatch.setattr("cloud.domain.data.segments.parquet.GROUP", 3)


async def seal(up: Uploads, clock: Clock, *, ahead: timedelta = timedelta(days=2)) -> None:
    """Seal everything, as if time had passed."""
    cloud = up.cloud.cloud
    async with (worker := Worker("test")).opened():
        await seal_all(cloud.store, cloud.blobs, worker, HOUR, lambda: clock.now + ahead)


async def counts(up: Uploads) -> tuple[int, int, int]:
    """Return the numbers of rows, segments and readings in segments."""
    store = up.cloud.cloud.store
    rows = await store.read(lambda sql: len(sql.rows("SELECT number FROM readings")))
    figures = await store.read(listed.figures)
    return rows, figures.segments, figures.readings


async def fill(up: Uploads, chance: random.Random, count: int = 60) -> None:
    for _ in range(count):
        values: dict[str, Any] = {"x": chance.random(), "deep": {"y": chance.random() < 0.5}}
        if chance.random() < 0.2:
            values = {"x": "text", "list": [chance.random(), None]}
        moment = chance.choice((chance.randrange(50), chance.uniform(0, 50), 25))
        await up.readings(
            piece(moment, **values), component_name=f"s{chance.randrange(3)}", tags=chance.choice([[], ["t"]])
        )


async def answers(up: Uploads, chance: random.Random) -> list[Any]:
    """Return what all calls that read readings answer to the same questions."""
    organization, results = up.cloud.first.organization, list[Any]()
    for _ in range(12):
        start, end = sorted((chance.randrange(51), chance.randrange(51)))
        conditions: dict[str, Any] = chance.choice(
            [{}, {"component_name": "s1"}, {"tags_filter": {"type": "TAGGED"}}, {"organization_ids": [organization]}]
        )
        if chance.random() < 0.6:
            conditions = {**conditions, "interval": {"start": at(start), "end": at(end + 1)}}
        count = await up.ask("tabular_data_by_filter", data_request={"filter": conditions}, count_only=True)
        results.append((count["count"], count["total_size_bytes"]))
        limit, order, last = chance.randrange(1, 9), chance.choice(["ASCENDING", "DESCENDING"]), ""
        while True:
            request = {"filter": conditions, "limit": limit, "sort_order": order, "last": last}
            page = await up.ask("tabular_data_by_filter", data_request=request)
            results.append([(row["time_requested"], row["data"]) for row in page["data"]])
            if not (last := page["last"]):
                break
    for number in range(3):
        method = {
            "part_id": up.part,
            "resource_name": f"s{number}",
            "resource_subtype": "sensor",
            "method_name": "Readings",
        }
        results.append(await up.ask("get_latest_tabular_data", **method))
        results.append([point async for point in up.owner.stream(DATA, "", "export_tabular_data", **method)])
    query = "SELECT time_requested, component_name, tags, data FROM readings ORDER BY time_requested, data::VARCHAR"
    results.append(await up.ask("tabular_data_by_sql", organization_id=organization, sql_query=query))
    return results


@BOTH
@pytest.mark.parametrize("seed", range(2))
async def test_answers_are_the_same_before_and_after_sealing(up: Uploads, clock: Clock, seed: int) -> None:
    chance = random.Random(seed)
    await fill(up, chance)
    before = await answers(up, random.Random(seed))
    await seal(up, clock)
    rows, segments, sealed = await counts(up)
    assert (rows, sealed) == (0, 60)
    assert segments >= 9
    assert await answers(up, random.Random(seed)) == before


@BOTH
async def test_answers_of_rows_and_segments_together(up: Uploads, clock: Clock) -> None:
    chance = random.Random(3)
    await fill(up, chance, 40)
    await seal(up, clock)
    clock.now += timedelta(days=3)
    await fill(up, chance, 40)
    rows, _, sealed = await counts(up)
    assert (rows, sealed) == (40, 40)
    before = await answers(up, random.Random(1))
    await seal(up, clock)
    assert await answers(up, random.Random(1)) == before
    assert (await counts(up))[0] == 0


@pytest.mark.parametrize("order", ["ASCENDING", "DESCENDING"])
async def test_pages_continue_while_readings_are_sealed(up: Uploads, clock: Clock, order: str) -> None:
    await fill(up, random.Random(5))
    request: dict[str, Any] = {"limit": 1000, "sort_order": order}
    whole = (await up.ask("tabular_data_by_filter", data_request=request))["data"]
    parts: list[Any] = []
    last = ""
    while page := (
        answer := await up.ask("tabular_data_by_filter", data_request={**request, "limit": 4, "last": last})
    )["data"]:
        parts += page
        last = answer["last"]
        if len(parts) in (8, 32):
            await seal(up, clock)
    fields = ("time_requested", "data")
    assert [[row[name] for name in fields] for row in parts] == [[row[name] for name in fields] for row in whole]


async def test_old_readings_of_an_existing_database_are_sealed_in_steps(up: Uploads, clock: Clock) -> None:
    await up.readings(*(piece(number, x=float(number)) for number in range(100)))
    await seal(up, clock, ahead=timedelta(minutes=30))  # nothing is old enough
    assert await counts(up) == (100, 0, 0)
    await seal(up, clock, ahead=HOUR * 1.5)  # MOST are there: no need to wait for a day
    assert await counts(up) == (2, 14, 98)
    await seal(up, clock, ahead=timedelta(days=1, hours=2))
    assert await counts(up) == (0, 15, 100)
    assert [value["x"] for value in await up.values()] == [float(number) for number in range(100)]


async def test_few_readings_wait_for_more(up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "SOME", 5)
    await up.readings(*(piece(number, x=1.0) for number in range(4)))
    await seal(up, clock)
    assert await counts(up) == (4, 0, 0)
    await seal(up, clock, ahead=timedelta(days=7, hours=2))
    assert await counts(up) == (0, 1, 4)


async def test_segments_are_bounded_in_characters_and_span(
    up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "CHARACTERS", 30)
    await up.readings(*(piece(number, text="x" * 10) for number in range(3)))  # 21 characters each
    await seal(up, clock)
    assert await counts(up) == (0, 3, 3)
    monkeypatch.setattr(sealing, "CHARACTERS", 1000)
    await up.readings(piece(10, x=1.0))
    clock.now += timedelta(days=8)
    await up.readings(piece(11, x=1.0))
    await seal(up, clock)
    assert await counts(up) == (0, 5, 5)


async def test_a_table_has_a_bounded_number_of_columns(
    up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.domain.data.segments.catalog.MAX_COLUMNS", 8)
    deep: Any = 1.0
    for _ in range(MAX_DEPTH + 2):
        deep = {"d": deep}
    await up.readings(piece(0, a=1.0), piece(1, a=1.0, b=2.0), piece(2, c=3.0), piece(3, a=deep), piece(4, e=1.0))
    before = await up.values()
    await seal(up, clock)
    assert (await counts(up))[0] == 0
    assert await up.values() == before
    columns = await up.cloud.cloud.store.read(lambda sql: sql.rows("SELECT column_id FROM ducklake_column"))
    assert len(columns) == 8


async def test_the_node_waits_for_uploads(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_nodes, "PAUSE", 0)
    sent, received = trio.open_memory_channel[bool](9)

    async def reported(*arguments: Any) -> bool:
        waiting = await seal_all(*arguments)  # with the time of the computer, which is months after the uploads
        await sent.send(waiting)
        return waiting

    monkeypatch.setattr(segment_nodes, "seal_all", reported)
    cloud = up.cloud.cloud
    assert segment_nodes.nodes(None, cloud.events, Restart()) == []
    (node,) = segment_nodes.nodes(HOUR, cloud.events, Restart())
    async with trio.open_nursery() as nursery:
        await nursery.start(node.run, {"database": cloud.store, "files": cloud.blobs})
        assert not await received.receive()
        for number in range(2):
            await up.readings(piece(number, x=1.0))
            assert await received.receive()
            assert not await received.receive()
            assert await counts(up) == (0, number + 1, number + 1)
        nursery.cancel_scope.cancel()


async def test_a_source_that_cannot_be_sealed_does_not_stop_others(
    up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        await up.readings(piece(0, x=name), component_name=name)

    def fail(columns: Columns, ids: list[int]) -> Any:
        if columns.fields["x"] == ["a"]:
            raise MachineError("the disk is full", kind=ErrorKind.UNAVAILABLE)
        return written(columns, ids)

    monkeypatch.setattr(sealing, "written", fail)
    await seal(up, clock)
    assert await counts(up) == (1, 1, 1)
    assert len(await up.values()) == 2


@BOTH
async def test_another_organization_sees_no_sealed_readings(up: Uploads, clock: Clock) -> None:
    cloud = up.cloud.cloud
    other = await cloud.store.write(lambda sql: create_owner(sql, "Other", clock()))
    await up.readings(piece(0, x=1.0))
    await seal(up, clock)
    stranger = Uploads(up.cloud, up.part, other.id)
    assert await stranger.values() == []
    count = await stranger.ask("tabular_data_by_filter", data_request={}, count_only=True)
    assert count["count"] == 0
    assert await stranger.ask("delete_tabular_data", organization_id=other.organization) == 0
    assert await up.values() == [{"x": 1.0}]


async def test_backups_and_the_doctor_know_the_files(up: Uploads, clock: Clock) -> None:
    cloud = up.cloud.cloud
    await up.readings(*(piece(number, x=1.0) for number in range(14)))
    await seal(up, clock)
    listed_sizes = await sizes(cloud.blobs)
    files = await cloud.store.read(lambda sql: named(sql, "", "~"))
    assert len(files) == 2
    assert {blob.key: blob.size for blob in files.values()} == listed_sizes
    assert set(await cloud.store.read(sample)) == set(listed_sizes)  # looked for at each start
    await bind(cloud.store, cloud.blobs)


# ---- deletion


@BOTH
async def test_deletion_by_filter_and_age(up: Uploads, clock: Clock) -> None:
    organization = up.cloud.first.organization
    for name in ("a", "b"):
        await up.readings(*(piece(number * 3600, x=float(number)) for number in range(20)), component_name=name)
    await seal(up, clock)
    await up.readings(piece(5 * 3600, x=100.0), component_name="a")
    clock.now = at(86_400 + 10 * 3600 + 1)  # older than a day: the first eleven

    async def delete(days: int, **fields: Any) -> Any:
        return await up.ask(
            "delete_tabular_data", organization_id=organization, delete_older_than_days=days, filter=fields
        )

    assert await delete(1, component_name="a") == 12  # a whole segment, a part of the next one, a row
    assert sorted(value["x"] for value in await up.values(component_name="a")) == [float(n) for n in range(11, 20)]
    assert len(await up.values(component_name="b")) == 20
    assert await delete(1, component_name="a") == 0
    assert await delete(0, component_name="b") == 20
    assert await delete(0) == 9
    assert await counts(up) == (0, 0, 0)
    assert await up.values() == []
    assert await _swept(up) == 0


@BOTH
async def test_retention_drops_segments_whose_last_reading_is_too_old(up: Uploads, clock: Clock) -> None:
    store, organization = up.cloud.cloud.store, up.cloud.first.organization
    await up.readings(*(piece(number, x=1.0) for number in range(7)))
    clock.now += timedelta(days=5)
    await up.readings(*(piece(number, x=2.0) for number in range(7)))
    await seal(up, clock)
    await store.write(lambda sql: retention.set_days(sql, organization, 10))
    clock.now += timedelta(days=6)
    assert await store.write(lambda sql: retention.expire(sql, clock.now)) == 7
    assert [value["x"] for value in await up.values()] == [2.0] * 7
    assert await counts(up) == (0, 1, 7)
    await store.write(lambda sql: retention.forget(sql, organization, clock.now))
    assert await counts(up) == (0, 0, 0)
    assert await _swept(up) == 0


async def _swept(up: Uploads) -> int:
    """Return how many files are left after the sweep of a later time."""
    cloud = up.cloud.cloud
    await sweep(cloud.store, cloud.blobs, now() + timedelta(days=30), age=-1)
    return len(await sizes(cloud.blobs))


# ---- failures


@pytest.mark.parametrize("moment", ["put", "commit", "changed"])
async def test_a_failure_at_any_step_loses_and_doubles_nothing(
    up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    await up.readings(*(piece(number, x=float(number)) for number in range(7)))
    before, cloud = await up.values(), up.cloud.cloud
    with monkeypatch.context() as patch:
        if moment == "put":
            put = type(cloud.blobs).put

            async def put_and_fail(self: Any, pieces: Any, key: str = "") -> Any:
                await put(self, pieces, key)  # the store has the file, and its answer is lost
                raise MachineError("the store does not answer", kind=ErrorKind.UNAVAILABLE)

            patch.setattr(type(cloud.blobs), "put", put_and_fail)
        elif moment == "commit":

            def fail(*_: Any) -> None:
                raise MachineError("the database does not answer", kind=ErrorKind.UNAVAILABLE)

            patch.setattr(listed, "add", fail)
        else:
            claim = listed.claim

            def others_delete(sql: Sql, *rest: Any) -> bool:
                sql.run("DELETE FROM readings WHERE number = (SELECT MAX(number) FROM readings)")
                return claim(sql, *rest)

            patch.setattr(listed, "claim", others_delete)
        await seal(up, clock)
        assert await counts(up) == (7, 0, 0)
        assert await up.values() == before
    await seal(up, clock)
    assert await counts(up) == (0, 1, 7)
    assert await up.values() == before
    assert await _swept(up) == 1


async def test_a_file_that_the_sweep_may_have_removed_is_not_named(
    up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await up.readings(piece(0, x=1.0))
    put = type(up.cloud.cloud.blobs).put

    async def put_slowly(self: Any, pieces: Any, key: str = "") -> Any:
        clock.now += timedelta(days=2)
        return await put(self, pieces, key)

    with monkeypatch.context() as patch:
        patch.setattr(type(up.cloud.cloud.blobs), "put", put_slowly)
        await seal(up, clock)
    assert await counts(up) == (1, 0, 0)
    assert await up.values() == [{"x": 1.0}]


async def test_a_missing_file_is_an_error_with_a_remedy(up: Uploads, clock: Clock) -> None:
    await up.readings(piece(0, x=1.0))
    await seal(up, clock)
    for key in await sizes(up.cloud.cloud.blobs):
        await up.cloud.cloud.blobs.delete(key)
    with pytest.raises(MachineError, match="their file does not exist") as caught:
        await up.values()
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_uploads_that_are_repeated_after_sealing_add_nothing(up: Uploads, clock: Clock) -> None:
    first = await up.readings(piece(0, x=1.0))
    await seal(up, clock)
    assert await up.readings(piece(0, x=1.0)) == first
    assert await up.values() == [{"x": 1.0}]
    assert readings.REMEMBERED > sealing.LONGEST


# ---- plots


@BOTH
@pytest.mark.parametrize("read", [48, 0])
async def test_plots_are_the_same_before_and_after_sealing(
    up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch, read: int
) -> None:
    """With `read` 0, segments inside the range are represented by their samples: here by all of their readings."""
    monkeypatch.setattr(plotting, "READ", read)
    chance = random.Random(4)
    for number in range(50):
        await up.readings(piece(number * 10, x=chance.random()), component_name=f"s{number % 2}")
    service = _service(up)

    async def plots() -> list[Any]:
        results = []
        for start, end in ((None, None), (at(95), None), (None, at(305)), (at(95), at(305)), (at(1000), None)):
            for most in (600, 40):
                monkeypatch.setattr("cloud.domain.data.series.MOST", most)
                results.append(await service.tabular_series(Filter(), ["x"], start, end, 20))
        return results

    before = await plots()
    assert any(each is not None and each.sampled for each in before)
    await seal(up, clock)
    after = await plots()
    assert [each and (each.start, each.end, each.more) for each in after] == [
        each and (each.start, each.end, each.more) for each in before
    ]
    for rows, segments in zip(before, after, strict=True):
        if rows is None or read or not rows.sampled:
            assert rows == segments
        else:
            for each, same in zip(rows.series, segments.series, strict=True):
                assert each.fields[0].name == same.fields[0].name
                assert [count > 0 for count in each.fields[0].count] == [count > 0 for count in same.fields[0].count]


@pytest.mark.parametrize("order", ["ASCENDING", "DESCENDING"])
async def test_a_page_of_many_sources_makes_no_other_readings(
    up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """The files overlap, and each has enough readings for the page: it needs 10 of 120."""
    for source in range(20):
        await up.readings(*(piece(20 * number + source, x=1.0) for number in range(6)), component_name=f"s{source:02}")
    await seal(up, clock)
    built = counted_rows(monkeypatch)
    page = await up.ask("tabular_data_by_filter", data_request={"limit": 10, "sort_order": order})
    assert len(page["data"]) == 10
    assert len(built) == 10


async def test_a_plot_of_a_sample_makes_no_other_readings(
    up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "MOST", 1000)
    monkeypatch.setattr("cloud.domain.data.segments.parquet.GROUP", 1000)
    monkeypatch.setattr("cloud.domain.data.series.MOST", 100)
    await up.readings(*(piece(number, x=1.0) for number in range(200)))
    await seal(up, clock)
    built = counted_rows(monkeypatch)
    plot = await _service(up).tabular_series(Filter(), ["x"], at(3), at(195), 2)
    assert plot.sampled
    assert len(built) < 50, "the newest, whose size is examined, and the sample: not the 101 that are too many"


def counted_rows(monkeypatch: pytest.MonkeyPatch) -> list[SegmentRow]:
    """Return a list of the readings that are built from the columns of files from now on."""
    built: list[SegmentRow] = []
    rows = Columns.rows

    def noted(self: Columns) -> Any:
        for row in rows(self):
            built.append(row)
            yield row

    monkeypatch.setattr(Columns, "rows", noted)
    return built


def _service(up: Uploads) -> Any:
    return DataService(up.cloud.cloud, Author(KEY, up.cloud.first.id))
