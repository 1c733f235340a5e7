"""Expired rows are deleted in small batches, so that other transactions do not wait for all of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from cloud.domain.data import readings
from cloud.domain.machines import log_counts, logs
from cloud.domain.machines.logs import LogRecord
from cloud.domain.triggering import deliveries
from cloud.domain.upkeep.housekeeping import CHORES
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql, inserted
from cloud.values.times import stored

OLD, YOUNG = timedelta(days=31), timedelta(days=29)


def log_entry(sql: Sql, number: int, moment: datetime) -> None:
    logs.append(sql, "part", [LogRecord(moment, "info", "test", f"message {number}")], moment)


def count(sql: Sql, number: int, moment: datetime) -> None:
    log_counts.add(sql, f"part {number}", [(stored(moment), "info")], moment)


def upload(sql: Sql, number: int, moment: datetime) -> None:
    inserted(sql, "data_uploads", {"key": str(number), "file_id": "f", "synced": stored(moment)})


def delivery(sql: Sql, number: int, moment: datetime) -> None:
    words = ("part_id", "trigger_name", "event", "entry", "type", "value", "target", "about", "method", "headers")
    counts = {"test": 0, "created": stored(moment), "due": 0}
    inserted(
        sql, "deliveries", {**dict.fromkeys(words, ""), **counts, "id": str(number), "body": b"", "state": "failed"}
    )
    attempt = {"delivery": str(number), "attempt": 1, "started": 0, "duration": 0, "status": 0, "error": "no"}
    inserted(sql, "delivery_attempts", attempt)


@pytest.mark.parametrize(
    ("what", "module", "make", "tables"),
    [
        ("log entries", logs, log_entry, ["log_entries"]),
        ("counts of log entries", log_counts, count, ["log_counts"]),
        ("records of uploads", readings, upload, ["data_uploads"]),
        ("deliveries", deliveries, delivery, ["deliveries", "delivery_attempts"]),
    ],
)
async def test_old_entries_are_deleted_in_batches(
    cloud: MemoryCloud, what: str, module: Any, make: Any, tables: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 3)
    store, now = cloud.cloud.store, cloud.cloud.clock()
    chore = dict(CHORES)[what]

    def fill(sql: Sql) -> None:
        for number in range(10):
            make(sql, number, now - (OLD if number < 7 else YOUNG))

    def left(sql: Sql) -> list[int]:
        return [len(sql.rows(f"SELECT * FROM {table}")) for table in tables]

    await store.write(fill)
    assert [await store.write(lambda sql: chore(sql, now)) for _ in range(4)] == [3, 3, 1, 0]
    assert await store.read(left) == [3] * len(tables)


async def test_deadlines_that_a_wrong_clock_has_set_come_when_it_is_corrected(cloud: MemoryCloud) -> None:
    now = cloud.cloud.clock()

    def fill(sql: Sql) -> None:
        for number, days in enumerate((0.5, 1.0, 5 * 365)):
            delivery(sql, number, now)
            due = stored(now + timedelta(days=days))
            sql.run("UPDATE deliveries SET state = 'waiting', due = ? WHERE id = ?", due, str(number))
            inserted(sql, "live", {"part_id": str(number), "watched": due})

    def left(sql: Sql) -> list[int]:
        rows = sql.rows("SELECT due FROM deliveries ORDER BY id")
        return [(row["due"] - stored(now)) // 1_000_000 for row in rows]

    await cloud.cloud.store.write(fill)
    chore = dict(CHORES)["deadlines that a wrong clock has set"]
    assert await cloud.cloud.store.write(lambda sql: chore(sql, now)) == 2
    assert await cloud.cloud.store.read(left) == [43_200, 86_400, 0]
