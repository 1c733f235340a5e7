"""Series for plots: complete if there are few readings, else a sample of each bucket, and what they cost."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from cloud.domain.data import series as tested
from cloud.domain.data.buckets import fields_of
from cloud.domain.data.filters import DataFilter, DataScope
from cloud.domain.data.series import CHARACTERS, LONGEST, MAX_SOURCES, MOST, Captured, Plotted, captured
from cloud.server.memory import MemoryCloud
from cloud.values.buckets import STEPS, buckets_of
from cloud.values.times import stored
from tests.unit.cloud.captured import Uploads, at, piece
from tests.unit.cloud.conftest import BOTH

SECOND = 1_000_000


@pytest.fixture
def up(cloud: MemoryCloud, part: str) -> Uploads:
    return Uploads(cloud, part)


async def read(up: Uploads, data_filter: DataFilter | None = None, points: int = 600) -> Captured:
    scope = DataScope((up.cloud.first.organization,))
    result = await up.cloud.cloud.store.read(lambda sql: captured(sql, data_filter or DataFilter(), scope, points))
    assert result is not None
    return result


async def numbers(up: Uploads, name: str, data_filter: DataFilter | None = None, points: int = 600) -> Plotted:
    return (await read(up, data_filter, points)).parsed([name])


# ---- buckets


def test_buckets_cover_a_range_with_round_lengths_that_do_not_move() -> None:
    chance = random.Random(1)
    assert list(STEPS) == sorted(set(STEPS))
    for _ in range(2000):
        start, points = chance.randrange(-(10**16), 10**16), chance.choice((2, 3, 640, 2000))
        end = start + chance.randrange(1, 10 ** chance.randrange(1, 18))
        buckets = buckets_of(start, end, points)
        assert buckets.first <= start
        assert end <= buckets.first + buckets.count * buckets.step < end + buckets.step
        assert 1 <= buckets.count <= points
        assert buckets.first % buckets.step == 0
        assert buckets.step in STEPS or buckets.step % STEPS[-1] == 0


def test_numbers_are_reduced_to_least_greatest_mean_and_count() -> None:
    texts = ['{"a": {"b": 1, "c": true, "t": "x", "l": [1]}}', '{"a": {"b": 4, "c": false}}', '{"a": {"b": NaN}}']
    readings = [(0, texts[0]), (1, texts[1]), (1, texts[2]), (25, '{"a": {"b": -2.5}, "z": 1e999}')]
    (b, c), others = fields_of(readings, buckets_of(0, 30, 4), 9)
    assert (b.name, b.boolean, b.start, b.end, b.last) == ("a.b", False, 0, 25, -2.5)
    assert (b.least, b.greatest, b.mean, b.count) == ((1, None, -2.5), (4, None, -2.5), (2.5, None, -2.5), (2, 0, 1))
    assert (c.name, c.boolean, c.mean, c.count) == ("a.c", True, (0.5, None, None), (2, 0, 0))
    assert others == []
    (c,), others = fields_of(readings, buckets_of(0, 30, 4), 9, ["a.c"])
    assert (c.name, others) == ("a.c", ["a.b"])
    (b,), others = fields_of(readings, buckets_of(0, 30, 4), 1)
    assert (b.name, others) == ("a.b", ["a.c"])
    huge = [(number, f'{{"x": {value}}}') for number, value in enumerate((1.5e308, 1.6e308, -1.7e308))]
    (x,), _ = fields_of(huge, buckets_of(0, 3, 2), 1)
    assert x.mean[0] == pytest.approx(1.4e308 / 3)


# ---- readings


@BOTH
async def test_a_sample_has_readings_of_each_bucket_with_any(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "MOST", 120)
    chance = random.Random(1)
    # Times repeat, come in no order, and have a long gap.
    times = [chance.choice((chance.uniform(0, 1000), chance.uniform(9000, 10_000), 5.5)) for _ in range(400)]
    await up.readings(*(piece(time, row=number) for number, time in enumerate(times)))
    result = await read(up, points=40)
    (only,), buckets = result.sources, result.buckets
    assert only.sampled
    moments = sorted({stored(at(time)) for time in times})
    assert (result.start, result.end) == (moments[0], moments[-1] + 1)
    assert (buckets.step, buckets.count) == (300 * SECOND, 34)
    first: dict[int, int] = {}
    for moment in moments:
        first.setdefault((moment - buckets.first) // (100 * SECOND), moment)  # 3 parts: 120 readings, 34 buckets
    assert [moment for moment, _ in only.readings] == list(first.values())
    plotted = result.parsed()
    ((rows,),) = [each.fields for each in plotted.series]
    present = {(moment - buckets.first) // buckets.step for moment in moments}
    assert [bool(count) for count in rows.count] == [number in present for number in range(buckets.count)]
    assert [mean is not None for mean in rows.mean] == [count > 0 for count in rows.count]
    assert max(rows.count) == 3
    for number, moment in enumerate(first.values()):
        row = min(row for row, time in enumerate(times) if stored(at(time)) == moment)
        assert only.readings[number][1] == f'{{"row":{float(row)}}}'


@BOTH
async def test_few_readings_are_complete(up: Uploads) -> None:
    await up.readings(*(piece(number, x=number) for number in range(30)))
    await up.readings(piece(3, x=1), component_name="other")
    plotted = await numbers(up, "x", DataFilter(start=at(3), end=at(20)))
    assert [(each.source.component, each.sampled) for each in plotted.series] == [("other", False), ("s", False)]
    (other,), (x,) = (each.fields for each in plotted.series)
    assert [mean for mean in x.mean if mean is not None] == list(range(3, 20))
    assert sum(other.count) == 1
    assert (plotted.start, plotted.end, plotted.more) == (stored(at(3)), stored(at(20)), False)
    scope = DataScope((up.cloud.first.organization,))
    later = DataFilter(start=at(100))
    assert await up.cloud.cloud.store.read(lambda sql: captured(sql, later, scope, 9)) is None


@BOTH
async def test_without_a_start_the_range_is_the_day_before_the_newest_reading(up: Uploads) -> None:
    await up.readings(piece(-100_000, x=1), piece(0, x=2), piece(90_000, x=3), piece(100_000, x=4))
    await up.readings(piece(5, x=1), component_name="older")
    plotted = await numbers(up, "x")
    (only,) = plotted.series
    assert (plotted.start, plotted.end) == (stored(at(90_000)), stored(at(100_000)) + 1)
    assert [mean for mean in only.fields[0].mean if mean is not None] == [3, 4]
    assert [each.source.component for each in (await numbers(up, "x", DataFilter(end=at(90_000)))).series] == [
        "older",
        "s",
    ]


@pytest.mark.parametrize("moment", [datetime.min, datetime.max])
async def test_times_at_the_ends_of_the_calendar(up: Uploads, moment: datetime) -> None:
    reading = piece(0, x=1)
    reading["metadata"] = {"time_requested": moment.replace(tzinfo=UTC), "time_received": moment.replace(tzinfo=UTC)}
    await up.readings(reading)
    assert sum((await numbers(up, "x")).series[0].fields[0].count) == 1


async def test_the_most_sources_and_fields(up: Uploads) -> None:
    for number in range(MAX_SOURCES + 3):
        fields = {f"f{field}": 1 for field in range(5)}
        await up.readings(piece(number, **fields), component_name=f"s{number:02}")
    result = await read(up)
    assert [each.source.component for each in result.sources] == [f"s{n:02}" for n in range(3, MAX_SOURCES + 3)]
    plotted = result.parsed()
    assert plotted.more
    assert [len(each.fields) for each in plotted.series] == [5] * 8 + [0] * 4
    assert plotted.series[-1].others == ("f0", "f1", "f2", "f3", "f4")
    assert [len(each.fields) for each in result.parsed(["f3"]).series] == [1] * 12
    assert not (await read(up, DataFilter(component="s03"))).more


async def test_readings_with_different_tags_are_different_series(up: Uploads) -> None:
    await up.readings(piece(0, x=1), tags=["a", "b"])
    await up.readings(piece(1, x=2))
    assert [(each.tags, each.fields[0].last) for each in (await numbers(up, "x")).series] == [(("a", "b"), 1), ((), 2)]


@BOTH
async def test_long_and_simultaneous_readings_are_bounded(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    await up.readings(piece(0, x=1), piece(1, text="x" * LONGEST), piece(2, x=3))
    assert (await numbers(up, "x")).series[0].fields[0].count == (1, *[0] * 399, 1)
    await up.readings(*(piece(2, x=number) for number in range(100)))
    monkeypatch.setattr(tested, "MOST", 10)
    (only,) = (await numbers(up, "x")).series
    assert only.sampled
    assert [mean for mean in only.fields[0].mean if mean is not None] == [1, 3]


async def test_fewer_long_readings_are_parsed(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "CHARACTERS", CHARACTERS * 200 // MOST)
    await up.readings(*(piece(number, x=number, text="x" * 1000) for number in range(200)))
    result = await read(up)
    assert result.sources[0].sampled
    assert 0 < result.size < CHARACTERS * 200 // MOST
    await up.readings(*(piece(number, x=number, text="x" * 100) for number in range(200)), component_name="short")
    assert not (await read(up, DataFilter(component="short"))).sources[0].sampled


async def test_the_cost_does_not_grow_with_what_is_stored(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in steps of SQLite, with and without a start, which SQLite could search from for each part."""
    monkeypatch.setattr(tested, "MOST", 100)
    scope = DataScope((up.cloud.first.organization,))

    async def cost(data_filter: DataFilter, *, sampled: bool = True) -> int:
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        def work(sql: Any) -> None:
            sql._connection.set_progress_handler(count, 100)
            try:
                result = captured(sql, data_filter, scope, 50)
            finally:
                sql._connection.set_progress_handler(None, 0)
            assert result is not None
            assert result.sources[0].sampled is sampled

        await up.cloud.cloud.store.read(work)
        return steps

    filters = (DataFilter(start=at(0)), DataFilter(), DataFilter(start=at(0), end=at(500)))
    await up.readings(*(piece(number, x=1) for number in range(500)))
    few = [await cost(data_filter) for data_filter in filters]
    zoomed = await cost(DataFilter(start=at(100), end=at(150)), sampled=False)
    for part in range(1, 10):
        await up.readings(*(piece(500 * part + number, x=1) for number in range(500)))
    many = [await cost(data_filter) for data_filter in filters]
    assert all(0 < after < 1.5 * before for before, after in zip(few, many, strict=True)), (few, many)
    assert 0 < await cost(DataFilter(start=at(100), end=at(150)), sampled=False) < 1.5 * zoomed
    assert zoomed < max(few)
