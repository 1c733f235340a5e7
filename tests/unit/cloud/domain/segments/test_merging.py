"""Small segments become one, and nothing that is asked for changes."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import trio

from cloud.blobs import sizes
from cloud.domain.data.segments import listed, merging, sealing
from cloud.domain.data.segments.contents import SegmentContents
from cloud.domain.data.segments.reading import Files
from cloud.domain.data.segments.sealing import Changed, Due
from cloud.domain.upkeep.sweep import sweep
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from cloud.values.times import now
from support.worker import Worker
from tests.unit.cloud.captured import Uploads, piece
from tests.unit.cloud.conftest import BOTH, Clock
from tests.unit.cloud.domain.segments.test_sealed import answers, counts, seal

pytestmark = pytest.mark.usefixtures("slow")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seal as soon as there are readings; segments with fewer than five are small."""
    monkeypatch.setattr(sealing, "_least", lambda oldest, before: 1)
    monkeypatch.setattr(sealing, "SOME", 5)
    monkeypatch.setattr(sealing, "MOST", 12)


@pytest.fixture
def up(cloud: MemoryCloud, part: str) -> Uploads:
    return Uploads(cloud, part)


async def weeks(up: Uploads, clock: Clock, count: int, each: int = 2, first: int = 0) -> None:
    """Upload some readings each week, and seal them a day later."""
    for week in range(first, first + count):
        for number in range(each):
            await up.readings(piece(week * 7 * 86400 + number, x=week * 10 + number, y="text"), component_name="slow")
        clock.now += timedelta(days=7)
        await seal(up, clock)


@BOTH
async def test_a_slow_source_has_a_segment_for_five_weeks(up: Uploads, clock: Clock) -> None:
    await weeks(up, clock, 3)
    assert await counts(up) == (0, 3, 6)
    await weeks(up, clock, 1, first=3)
    assert await counts(up) == (0, 1, 8)
    await weeks(up, clock, 8, first=4)
    assert await counts(up) == (0, 3, 24)
    numbers = [row["data"]["x"] async for row in pages(up)]
    assert numbers == sorted(numbers)
    assert len(numbers) == 24


async def pages(up: Uploads) -> AsyncIterator[dict[str, Any]]:
    last = ""
    while True:
        page = await up.ask("tabular_data_by_filter", data_request={"filter": {}, "limit": 5, "last": last})
        for row in page["data"]:
            yield row
        if not (last := page["last"]):
            return


async def test_answers_are_the_same_before_and_after_a_merge(
    up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "FEWEST", 100)
    await weeks(up, clock, 4)
    before, (_, segments, _) = await answers(up, random.Random(1)), await counts(up)
    monkeypatch.setattr(merging, "FEWEST", 4)
    assert segments == 4
    assert await merge(up, clock) == 4
    assert await counts(up) == (0, 1, 8)
    assert await answers(up, random.Random(1)) == before


async def test_files_of_merged_segments_are_removed_in_the_end(up: Uploads, clock: Clock) -> None:
    await weeks(up, clock, 4)
    cloud = up.cloud.cloud
    assert len(await sizes(cloud.blobs)) == 5
    await sweep(cloud.store, cloud.blobs, now() + timedelta(days=30), age=-1)
    assert set(await sizes(cloud.blobs)) == set(await cloud.store.read(lambda sql: listed.blobs_from(sql, "", "~")))
    assert len(await sizes(cloud.blobs)) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("SOME", 2), ("MOST", 7), ("CHARACTERS", 10)],
)
async def test_large_segments_are_left_alone(
    up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    await weeks(up, clock, 3)
    monkeypatch.setattr(sealing, name, value)
    await weeks(up, clock, 1, first=3)
    assert (await counts(up))[1] >= 4


async def test_segments_far_apart_are_left_alone(up: Uploads, clock: Clock) -> None:
    for year in range(4):
        await weeks(up, clock, 1, first=52 * year)
    assert await counts(up) == (0, 4, 8)


async def test_of_two_merges_at_once_one_happens(up: Uploads, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "FEWEST", 100)
    await weeks(up, clock, 4)
    monkeypatch.setattr(merging, "FEWEST", 4)
    results = list[int]()

    async def merge_once() -> None:
        try:
            results.append(await merge(up, clock))
        except Changed:
            results.append(-1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(merge_once)
        nursery.start_soon(merge_once)
    assert sorted(results) in ([-1, 4], [0, 4])
    assert await counts(up) == (0, 1, 8)


async def merge(up: Uploads, clock: Clock) -> int:
    cloud = up.cloud.cloud

    def due(sql: Sql) -> Due:
        (row,) = sql.rows("SELECT number, organization_id FROM data_sources")
        return Due(row["number"], row["organization_id"])

    async with (worker := Worker("test")).opened():
        files = Files(cloud.blobs, SegmentContents(), worker.run)
        return await merging.merged(cloud.store, files, await cloud.store.read(due), clock)
