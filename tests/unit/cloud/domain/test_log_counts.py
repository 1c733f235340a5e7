"""Counts of log entries for plots: written with the entries, read in buckets, expired with them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from cloud.domain.machines import log_counts, logs
from cloud.domain.machines.log_counts import STEP, LogCounts
from cloud.domain.machines.logs import LogRecord
from cloud.server.memory import MemoryCloud
from cloud.store.migrations import STEPS, migrate, statements
from cloud.store.tables import core
from cloud.values.times import stored

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


async def log(cloud: MemoryCloud, *entries: tuple[int, str], now: datetime = START + HOUR, part: str = "part") -> None:
    """Log an entry at each minute after START, with a level."""
    records = [
        LogRecord(START + timedelta(minutes=minute), level, "x", f"{minute} {level}") for minute, level in entries
    ]
    await cloud.cloud.store.write(lambda sql: logs.append(sql, part, records, now))


async def counts(cloud: MemoryCloud, span: timedelta = HOUR, points: int = 600) -> LogCounts:
    return await cloud.cloud.store.read(lambda sql: log_counts.read(sql, "part", START, START + span, points))


def present(levels: Mapping[str, list[int]]) -> dict[str, list[int]]:
    return {level: numbers for level, numbers in levels.items() if any(numbers)}


async def test_entries_are_counted_by_level_and_step(cloud: MemoryCloud) -> None:
    await log(cloud, (0, "INFO"), (9, "info"), (10, "warning"), (59, "fatal"), (25, "trace"), (26, "strange"))
    await log(cloud, (11, "warn"), (0, "error"))
    await log(cloud, (0, "error"), part="other")
    result = await counts(cloud)
    assert result.buckets.starts() == [stored(START) + number * STEP for number in range(6)]
    assert present(result.levels) == {
        "info": [2, 0, 1, 0, 0, 0],
        "warn": [0, 2, 0, 0, 0, 0],
        "error": [1, 0, 0, 0, 0, 1],
        "debug": [0, 0, 1, 0, 0, 0],
    }


async def test_an_entry_that_is_sent_again_is_counted_once(cloud: MemoryCloud) -> None:
    await log(cloud, (0, "info"), (1, "info"))
    await log(cloud, (0, "info"), (1, "info"), (2, "info"))
    assert sum((await counts(cloud)).levels["info"]) == 3


async def test_a_time_in_the_future_counts_as_that_of_arrival(cloud: MemoryCloud) -> None:
    await log(cloud, (300, "info"), now=START + timedelta(minutes=15))
    assert (await counts(cloud)).levels["info"] == [0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(("points", "minutes"), [(600, 10), (200, 10), (100, 15), (25, 60), (2, 1440)])
async def test_buckets_are_multiples_of_a_step(cloud: MemoryCloud, points: int, minutes: int) -> None:
    await log(cloud, *((minute, "info") for minute in range(0, 1440, 5)), now=START + 24 * HOUR)
    result = await counts(cloud, 24 * HOUR, points)
    assert sum(result.levels["info"]) == 288
    assert result.buckets.step % STEP == 0
    assert result.buckets.step >= minutes * 60_000_000
    assert result.buckets.count <= max(points, 2)


async def test_they_expire_with_the_entries(cloud: MemoryCloud) -> None:
    later = START + log_counts.KEPT + HOUR
    await log(cloud, (0, "info"))
    await log(cloud, (59, "info"), now=later)  # arrives too late for a plot
    expired = [await cloud.cloud.store.write(lambda sql: log_counts.expire(sql, later)) for _ in range(2)]
    assert expired == [1, 0]
    assert await cloud.cloud.store.read(lambda sql: sql.rows("SELECT * FROM log_counts")) == []


async def test_nothing_is_expired_that_plots_still_show(cloud: MemoryCloud) -> None:
    await log(cloud, (0, "info"))
    assert await cloud.cloud.store.write(lambda sql: log_counts.expire(sql, START + log_counts.KEPT)) == 0


def test_entries_of_an_older_cloud_are_counted() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    had = STEPS.index(core.LOG_COUNTS)
    for step in STEPS[:had]:
        for statement in statements(step):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {had}")
    levels = ("warn", "warning", "", "panic", "trace", "strange")
    for at, level in enumerate(levels):
        row = ("part", stored(START) + at, stored(START), "", level, "x", "m", "{}", "", "[]")
        connection.execute(
            "INSERT INTO log_entries (part_id, logged, received, host, level, logger, message, caller, stack, fields)"
            f" VALUES ({', '.join('?' * len(row))})",
            row,
        )
    migrate(connection)
    rows = connection.execute("SELECT start, level, count FROM log_counts ORDER BY level").fetchall()
    assert rows == [
        (stored(START), level, count)
        for level, count in zip(("debug", "error", "info", "warn"), (1, 1, 2, 2), strict=True)
    ]
    connection.close()
