"""Searches in the logs of many machines: order, filters, continuation, and a cost that does not grow."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cloud.domain.fleet import fleet_logs
from cloud.domain.fleet.fleet_logs import FleetLog, search
from cloud.domain.machines import logs
from cloud.domain.machines.logs import LogQuery, LogRecord
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from tests.unit.cloud.conftest import BOTH

NOW = datetime(2026, 1, 20, 12, tzinfo=UTC)
PARTS = ("a", "b", "c")


def entry(minutes: float, message: str = "m", level: str = "info", logger: str = "rdk.motor") -> LogRecord:
    """Return an entry of so many minutes before NOW."""
    return LogRecord(NOW - timedelta(minutes=minutes), level, logger, message)


async def stored(cloud: MemoryCloud, entries: Sequence[tuple[str, LogRecord]]) -> None:
    def work(sql: Sql) -> None:
        for part in sorted({part for part, _ in entries}):
            own = [record for owner, record in entries if owner == part]
            for first in range(0, len(own), logs.MAX_BATCH):
                logs.append(sql, part, own[first : first + logs.MAX_BATCH], NOW)

    await cloud.cloud.store.write(work)


async def searched(cloud: MemoryCloud, parts: Sequence[str] = PARTS, **conditions: Any) -> FleetLog:
    return await cloud.cloud.store.read(lambda sql: search(sql, parts, LogQuery(**conditions), NOW))


async def everything(cloud: MemoryCloud, parts: Sequence[str] = PARTS, **conditions: Any) -> list[tuple[str, str]]:
    """Return parts and messages of all pages."""
    results: list[tuple[str, str]] = []
    query = LogQuery(**conditions)
    while True:
        result = await cloud.cloud.store.read(lambda sql: search(sql, parts, query, NOW))  # noqa: B023 - used at once
        results += [(part, record.message) for part, record in result.entries]
        if result.after is None:
            return results
        assert query.after is None or result.after < query.after
        query = replace(query, after=result.after)


@BOTH
async def test_entries_of_machines_are_in_the_order_of_time(cloud: MemoryCloud) -> None:
    await stored(cloud, [("a", entry(1, "1")), ("b", entry(2, "2")), ("a", entry(700, "3")), ("c", entry(40_000, "4"))])
    assert await everything(cloud) == [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")]
    assert await everything(cloud, ["b"]) == [("b", "2")]
    assert await everything(cloud, []) == []


@pytest.mark.parametrize(
    ("conditions", "messages"),
    [
        ({"levels": ("error", "fatal")}, ["pump failed", "out of memory"]),
        ({"contains": "PUMP"}, ["pump failed", "pump runs"]),
        ({"source": "rdk.pump", "levels": ("error", "fatal")}, ["pump failed"]),
        ({"start": NOW - timedelta(minutes=35)}, ["pump failed", "pump runs"]),
        ({"end": NOW - timedelta(minutes=30)}, ["out of memory"]),
        ({"contains": "%"}, []),
    ],
)
async def test_conditions_of_entries(cloud: MemoryCloud, conditions: dict[str, Any], messages: list[str]) -> None:
    entries = [("a", entry(10, "pump failed", "error", "rdk.pump")), ("b", entry(30, "pump runs", "info", "rdk.pump"))]
    await stored(cloud, [*entries, ("b", entry(90, "out of memory", "fatal"))])
    assert [message for _, message in await everything(cloud, **conditions)] == messages


async def test_pages_continue_where_the_one_before_ended(cloud: MemoryCloud) -> None:
    await stored(cloud, [(PARTS[number % 3], entry(number // 5, str(number))) for number in range(50)])
    one_by_one = await everything(cloud, limit=1)
    assert sorted(one_by_one) == sorted((PARTS[number % 3], str(number)) for number in range(50))
    assert await everything(cloud, limit=7) == one_by_one
    first = await searched(cloud, limit=7)
    assert (len(first.entries), first.full) == (7, True)


async def test_a_search_ends_after_its_budget_and_goes_on(cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_logs, "BUDGET", 100)
    monkeypatch.setattr(fleet_logs, "SLICE", 30)
    await stored(cloud, [("a", entry(number / 50, str(number))) for number in range(450)])
    await stored(cloud, [("b", entry(8, "needle"))])
    first = await searched(cloud, contains="needle")
    assert (first.entries, first.full) == ([], False)
    assert first.after is not None
    assert await everything(cloud, contains="needle") == [("b", "needle")]


async def test_a_search_of_many_machines_reads_so_many_counts(
    cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_logs, "WIDE", 30)
    monkeypatch.setattr(fleet_logs, "WIDEST", 300)
    await stored(cloud, [("c", entry(20_000, "old"))])
    first = await searched(cloud)
    assert (first.entries, first.full) == ([], False)
    assert await everything(cloud) == [("c", "old")]


@BOTH
async def test_every_entry_is_returned_once_in_order(cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(20):
        chance = random.Random(seed)
        parts = [f"{seed}-{number}" for number in range(3)]
        rows = [
            (chance.choice(parts), entry(chance.choice((0, 1, 9, 10, 11, 500, chance.randrange(40_000))), str(number)))
            for number in range(chance.randrange(1, 60))
        ]
        await stored(cloud, rows)
        monkeypatch.setattr(fleet_logs, "BUDGET", chance.randrange(1, 40))
        monkeypatch.setattr(fleet_logs, "SLICE", chance.randrange(1, 10))
        monkeypatch.setattr(fleet_logs, "WIDE", chance.randrange(1, 300))
        monkeypatch.setattr(fleet_logs, "WIDEST", chance.randrange(1000, 9000))
        results = await everything(cloud, parts, limit=chance.randrange(1, 20))
        assert sorted(results) == sorted((part, record.message) for part, record in rows), seed
        times = {record.message: record.time for _, record in rows}
        assert [times[message] for _, message in results] == sorted(times.values(), reverse=True), seed
