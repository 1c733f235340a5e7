"""What questions and expiry cost does not grow with what is stored: steps of SQLite with ten times the data."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from cloud.domain.data import files, readings, retention
from cloud.domain.data.filters import DataFilter, DataScope
from cloud.domain.data.pages import Page
from cloud.domain.machines import logs
from cloud.domain.machines.logs import LogQuery
from cloud.domain.permissions import audit
from cloud.store.migrations import migrate
from cloud.store.sql import Sql
from cloud.store.sqlite import SqliteHandle
from cloud.values.times import stored

START = datetime(2026, 1, 1, tzinfo=UTC)
SOURCES = 10
OWN, ALL = DataScope(("a",)), DataFilter()
EVERY = 10  # instructions of SQLite's virtual machine that count as a step


def filled(count: int) -> sqlite3.Connection:
    """Return a database with so many readings, files, log entries and audit entries, half of another organization."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    connection.execute("BEGIN")
    for number in range(SOURCES):
        connection.execute(
            "INSERT INTO data_sources VALUES (?, ?, ?, 'l', 'm', 'm', 'p', 'p', 'sensor', 's', 'Readings', '{}')",
            (number, f"k{number}", "ab"[number % 2]),
        )
    for number in range(count):
        moment = stored(START) + number * 1_000_000
        connection.execute(
            "INSERT INTO readings (source, requested, received, synced, data) VALUES (?, ?, ?, ?, '{}')",
            (number % SOURCES, moment, moment, moment),
        )
        connection.execute(
            "INSERT INTO files (id, key, source, blob, digest, size, type, name, extension, mime, requested, received, "
            "synced) VALUES (?, ?, ?, ?, '', 1, 'file', '', '', 'a/b', ?, ?, ?)",
            (f"f{number}", f"k{number}", number % SOURCES, f"b{number}", moment, moment, moment),
        )
        connection.execute(
            "INSERT INTO log_entries (part_id, logged, received, host, level, logger, message, caller, stack, fields) "
            "VALUES ('p', ?, ?, '', 'info', '', '', '{}', '', '[]')",
            (moment, moment),
        )
        connection.execute(
            "INSERT INTO audit (organization_id, happened, author_type, author, action, subject, detail) "
            "VALUES ('a', ?, '', '', ?, '', '{}')",
            (moment, f"do{number % 7}"),
        )
    for owner, days in (("a", 30), ("b", 36_500)):
        connection.execute("INSERT INTO organizations (id, name, created) VALUES (?, ?, 0)", (owner, owner))
        connection.execute("INSERT INTO data_retention VALUES (?, ?)", (owner, days))
    connection.execute("COMMIT")
    return connection


def second_page(sql: Sql, data_filter: DataFilter, descending: bool) -> object:
    last = readings.query(sql, data_filter, OWN, Page(None, 20, descending))[-1]
    return readings.query(sql, data_filter, OWN, Page((stored(last.requested), last.number), 20, descending))


LATE = START + timedelta(days=30, seconds=100)  # when 50 of the readings of one organization have expired
QUESTIONS: dict[str, Callable[[Sql], object]] = {
    "retention, nothing old": lambda sql: retention.expire(sql, START + timedelta(days=1)),
    "retention, some old": lambda sql: retention.expire(sql, LATE),
    "newest readings": lambda sql: readings.query(sql, ALL, OWN, Page(None, 20, True)),
    "first readings": lambda sql: readings.query(sql, ALL, OWN, Page(None, 20)),
    "second page, newest first": lambda sql: second_page(sql, ALL, True),
    "second page of an early range": lambda sql: second_page(sql, DataFilter(start=START), False),
    "second page before a late end": lambda sql: second_page(sql, DataFilter(end=START + timedelta(days=9)), True),
    "newest files": lambda sql: files.query(sql, ALL, OWN, Page(None, 20, True)),
    "deleting early readings": lambda sql: readings.delete(sql, DataFilter(end=START + timedelta(seconds=100)), OWN),
    "tail of a log": lambda sql: logs.arrived(sql, "p", logs.newest(sql) - 3),
    "newest entry until a time": lambda sql: logs.newest(sql, START + timedelta(seconds=5)),
    "page of a log": lambda sql: logs.query(sql, "p", LogQuery(limit=20)),
    "second page of a log": lambda sql: logs.query(
        sql, "p", LogQuery(after=(stored(START) + 90_000_000, 90), limit=20)
    ),
    "actions of the audit log": lambda sql: audit.actions(sql, "a"),
}


def steps(connection: sqlite3.Connection, work: Callable[[Sql], object]) -> int:
    """Return the steps of a transaction, which is rolled back."""
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    connection.execute("BEGIN")
    connection.set_progress_handler(step, EVERY)
    try:
        work(SqliteHandle(connection))
    finally:
        connection.set_progress_handler(None, EVERY)
        connection.execute("ROLLBACK")
    return count


@pytest.mark.parametrize("name", QUESTIONS)
def test_ten_times_the_data_cost_the_same(name: str) -> None:
    with closing(filled(300)) as little, closing(filled(3000)) as much:
        few = steps(little, QUESTIONS[name])
        assert few > 0
        assert steps(much, QUESTIONS[name]) <= 1.5 * few + 5
