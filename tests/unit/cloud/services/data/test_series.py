"""Series for plots: complete if there are few readings, else one reading of each interval, and what they cost."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from cloud.domain.data import series as tested
from cloud.domain.data.filters import DataFilter, Scope
from cloud.domain.data.pages import Page
from cloud.domain.data.series import LONGEST, MAX_SOURCES, Series, series
from cloud.server.memory import MemoryCloud
from tests.unit.cloud.captured import Uploads, at, piece
from tests.unit.cloud.conftest import BOTH


@pytest.fixture
def up(cloud: MemoryCloud, part: str) -> Uploads:
    return Uploads(cloud, part)


async def read(up: Uploads, data_filter: DataFilter | None = None) -> list[Series]:
    scope, page = Scope((up.cloud.first.organization,)), Page(limit=200, descending=True)
    return await up.cloud.cloud.store.read(lambda sql: series(sql, data_filter or DataFilter(), scope, page))


@BOTH
async def test_one_reading_of_each_interval(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "MOST", 50)
    monkeypatch.setattr(tested, "INTERVALS", 40)
    chance = random.Random(1)
    # Times repeat, come in no order, and have a long gap.
    times = [chance.choice((chance.uniform(0, 1000), chance.uniform(9000, 10_000), 5.5)) for _ in range(400)]
    await up.readings(*(piece(time, row=number) for number, time in enumerate(times)))
    (only,) = await read(up)
    moments = sorted({at(time) for time in times})
    span = moments[-1] - moments[0]
    assert only.step == (span // timedelta(microseconds=1) // 40 + 1) * timedelta(microseconds=1)
    first: dict[int, object] = {}
    for moment in moments:
        first.setdefault((moment - moments[0]) // only.step, moment)
    assert [moment for moment, _ in only.readings] == list(first.values())
    assert all(data["row"] == min(n for n, t in enumerate(times) if at(t) == moment) for moment, data in only.samples())


@BOTH
async def test_few_readings_are_complete(up: Uploads) -> None:
    await up.readings(*(piece(number, x=number) for number in range(30)))
    await up.readings(piece(3, x=1), component_name="other")
    other, only = await read(up, DataFilter(start=at(3), end=at(20)))
    if other.source.component != "other":
        other, only = only, other
    assert (other.step, only.step) == (timedelta(), timedelta())
    assert [data["x"] for _, data in only.samples()] == list(range(3, 20))
    assert len(other.readings) == 1
    assert await read(up, DataFilter(start=at(100))) == []


async def test_the_most_sources(up: Uploads) -> None:
    for number in range(MAX_SOURCES + 3):
        await up.readings(piece(number, x=1), component_name=f"s{number}")
    result = await read(up)
    assert [each.source.component for each in result] == [f"s{n}" for n in range(MAX_SOURCES + 2, 2, -1)]


@BOTH
async def test_long_and_simultaneous_readings_are_bounded(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    await up.readings(piece(0, x=1), piece(1, text="x" * LONGEST), piece(2, x=3))
    (only,) = await read(up)
    assert [data["x"] for _, data in only.samples()] == [1, 3]
    await up.readings(*(piece(2, x=number) for number in range(100)))
    monkeypatch.setattr(tested, "MOST", 10)
    (only,) = await read(up)
    assert [data["x"] for _, data in only.samples()] == [1, 3]


async def test_the_cost_does_not_grow_with_what_is_stored(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in steps of SQLite, in a range whose start is given, which SQLite could search from for each interval."""
    monkeypatch.setattr(tested, "MOST", 100)
    monkeypatch.setattr(tested, "INTERVALS", 50)
    scope, page = Scope((up.cloud.first.organization,)), Page(limit=10, descending=True)

    async def cost() -> int:
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        def work(sql: Any) -> None:
            sql._connection.set_progress_handler(count, 100)
            try:
                (only,) = series(sql, DataFilter(start=at(0)), scope, page)
            finally:
                sql._connection.set_progress_handler(None, 0)
            assert only.step

        await up.cloud.cloud.store.read(work)
        return steps

    await up.readings(*(piece(number, x=1) for number in range(500)))
    few = await cost()
    for part in range(1, 10):
        await up.readings(*(piece(500 * part + number, x=1) for number in range(500)))
    assert 0 < await cost() < 1.5 * few
