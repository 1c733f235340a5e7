"""Measure what questions to the tables of machine-cloud cost as more is stored, against the statements of before.

`python -m bench cloud_stored [--readings 10000 1000000] [--sources 100] [--repeat 5] [--database sqlite postgresql]`

Two organizations have half of the readings each: quantized values of three sensors, one reading a second and source.
A machine has as many log lines as all readings, at most 1,000,000. Each time is the median of processor time (SQLite)
or of time (PostgreSQL, where another process works), within a transaction that is rolled back. `of before` are
statements that the cloud had until 2026-11, with the indexes of then: their ratio is the gain.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cloud.domain.data import readings, retention
from cloud.domain.data.filters import DataFilter, DataScope
from cloud.domain.data.pages import Page
from cloud.domain.machines import logs
from cloud.store.migrations import migrate
from cloud.store.sql import Sql, Value
from cloud.store.sqlite import SqliteHandle
from cloud.values.times import stored

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
SECOND: Final = 1_000_000
ORGANIZATIONS: Final = ("a", "b")
LINES: Final = 1_000_000
_SOURCE: Final = (
    "INSERT INTO data_sources (number, key, organization_id, location_id, machine_id, machine, part_id, part, "
    "component_type, component, method, parameters) "
    "VALUES (?, ?, ?, 'l', ?, ?, ?, 'main', 'sensor', ?, 'Readings', '{}')"
)
_READING: Final = "INSERT INTO readings (source, requested, received, synced, data) VALUES (?, ?, ?, ?, ?)"
_LINE: Final = (
    "INSERT INTO log_entries (part_id, logged, received, host, level, logger, message, caller, stack, fields) "
    "VALUES ('p', ?, ?, 'h', 'info', 'l', 'a line', '{}', '', '[]')"
)


def main(argv: Sequence[str]) -> int:
    """Print a table; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--sources", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--database", nargs="+", choices=list(OPENED), default=list(OPENED))
    options = parser.parse_args(argv)
    for database in options.database:
        for count in options.readings:
            with OPENED[database]() as (connection, sql, clock):
                fill(connection, sql, count, options.sources)
                print(f"{database}, {count:,} readings of {options.sources} sources", flush=True)
                for name, (before, work) in questions(count, options.sources).items():
                    seconds = statistics.median(timed(sql, before, work, clock) for _ in range(options.repeat))
                    print(f"  {name:62} {seconds * 1e3:10.2f} ms", flush=True)
    return 0


Clock = Callable[[], float]


@contextmanager
def sqlite() -> Iterator[tuple[Any, Sql, Clock]]:
    """Open a database in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    yield connection, SqliteHandle(connection), time.process_time
    connection.close()


@contextmanager
def postgresql() -> Iterator[tuple[Any, Sql, Clock]]:
    """Open an empty schema of a temporary cluster."""
    from cloud.store import session
    from tests.postgresql import QUICK, cluster

    with cluster(*QUICK) as server:
        url = server.fresh()
        session.migrate(url)
        connection = session.connected(url)
        for name, value in session.SETTINGS:
            connection.execute("SELECT set_config($1, $2, false)", (name, value))
        yield connection, session.PostgresHandle(connection, "", ""), time.perf_counter
        connection.close()


OPENED: Final = {"sqlite": sqlite, "postgresql": postgresql}


def fill(connection: Any, sql: Sql, count: int, sources: int) -> None:
    """Store readings and log lines. The index of before is added: it costs only space."""
    chance = random.Random(1)
    connection.execute("BEGIN")
    sql.many(
        _SOURCE,
        [
            (number, f"k{number}", ORGANIZATIONS[number % 2], f"m{number}", f"m{number}", f"p{number}", f"s{number}")
            for number in range(1, sources + 1)
        ],
    )
    first, value = stored(START), 20.0
    for start in range(0, count, 10_000):
        rows: list[tuple[Value, ...]] = []
        for number in range(start, min(count, start + 10_000)):
            value += chance.choice((-0.1, 0.0, 0.1))
            moment = first + number // sources * SECOND
            data = f'{{"readings":{{"temperature":{value:.1f},"humidity":{40 + value % 7:.1f},"lux":{number % 400}}}}}'
            rows.append((number % sources + 1, moment, moment, moment, data))
        sql.many(_READING, rows)
    for start in range(0, min(count, LINES), 10_000):
        sql.many(_LINE, [(first + number, first + number) for number in range(start, min(count, start + 10_000))])
    sql.run("CREATE INDEX readings_synced ON readings (synced)")
    for owner, days in (("a", 1), ("b", 36_500)):
        sql.run("INSERT INTO organizations (id, name, created) VALUES (?, ?, 0)", owner, owner)
        retention.set_days(sql, owner, days)
    connection.execute("COMMIT")
    if not isinstance(sql, SqliteHandle):
        connection.execute("ANALYZE")


def questions(count: int, sources: int) -> dict[str, tuple[str, Callable[[Sql], object]]]:
    """Return what is measured, each with a statement that is executed before it."""
    scope, early = DataScope(("a",)), START + timedelta(hours=12)
    later = START + timedelta(days=1, seconds=min(5000, count // 4) * 2 // sources)  # so many readings are old
    whole = "FROM readings JOIN data_sources ON data_sources.number = readings.source WHERE organization_id = 'a'"
    newest = Page(limit=50, descending=True)

    def second_page(sql: Sql) -> object:
        last = readings.query(sql, DataFilter(), scope, newest)[-1]
        return readings.query(sql, DataFilter(), scope, Page((stored(last.requested), last.number), 50, True))

    def tail(sql: Sql) -> object:
        return logs.arrived(sql, "p", logs.newest(sql) - 3)

    def deleted_before(sql: Sql, before: datetime) -> int:
        rows = f"SELECT readings.number {whole} AND readings.synced < ? ORDER BY readings.number LIMIT 5000"
        return sql.run(f"DELETE FROM readings WHERE number IN ({rows})", stored(before - timedelta(days=1)))

    earlier = "DROP INDEX readings_expiry"
    return {
        "retention, nothing old": ("", lambda sql: retention.expire(sql, early)),
        "retention, nothing old: of before": (earlier, lambda sql: deleted_before(sql, early)),
        "retention, 5,000 old readings": ("", lambda sql: retention.expire(sql, later)),
        "retention, 5,000 old readings: of before": (earlier, lambda sql: deleted_before(sql, later)),
        "newest 50 readings": ("", lambda sql: readings.query(sql, DataFilter(), scope, newest)),
        "newest 50 readings, and the 50 before them": ("", second_page),
        "newest 50 readings: of before, positions alone": (
            "",
            lambda sql: sql.rows(
                f"SELECT readings.number AS number {whole} ORDER BY requested DESC, readings.number DESC LIMIT 50"
            ),
        ),
        "count for a page: of before, now none": ("", lambda sql: readings.total(sql, DataFilter(), scope)),
        "tail of the log, 3 new lines": ("", tail),
        "tail of the log: of before": ("DROP INDEX log_entries_arrival", tail),
    }


def timed(sql: Sql, before: str, work: Callable[[Sql], object], clock: Clock) -> float:
    """Return the seconds of `work`, whose changes are undone."""
    sql.run("BEGIN")
    try:
        if before:
            sql.run(before)
        begin = clock()
        work(sql)
        return clock() - begin
    finally:
        sql.run("ROLLBACK")
