"""The baseline for the storage of a cloud: a bare loop that writes the same rows.

It uses one connection and one transaction for the rows of one call, on the same disk and with the same guarantee: a
commit returns when it is on disk. It has no authentication, decoding or notification. Rows are written with
`executemany`, readings in PostgreSQL with COPY.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloud.store.dialect import numbered, typed

TABLES = {
    "log": """
        CREATE TABLE IF NOT EXISTS bare_log (
            number INTEGER PRIMARY KEY AUTOINCREMENT, part_id TEXT NOT NULL, logged INTEGER NOT NULL,
            received INTEGER NOT NULL, host TEXT NOT NULL, level TEXT NOT NULL, logger TEXT NOT NULL,
            message TEXT NOT NULL, caller TEXT NOT NULL, stack TEXT NOT NULL, fields TEXT NOT NULL
        );
        CREATE INDEX IF NOT EXISTS bare_log_part ON bare_log (part_id, logged, number);
        CREATE INDEX IF NOT EXISTS bare_log_received ON bare_log (received);
    """,
    "upload": """
        CREATE TABLE IF NOT EXISTS bare_upload (
            number INTEGER PRIMARY KEY AUTOINCREMENT, source INTEGER NOT NULL, requested INTEGER NOT NULL,
            received INTEGER NOT NULL, synced INTEGER NOT NULL, data TEXT NOT NULL
        );
        CREATE INDEX IF NOT EXISTS bare_upload_source ON bare_upload (source, requested, number);
        CREATE INDEX IF NOT EXISTS bare_upload_synced ON bare_upload (synced);
    """,
}
INSERTS = {
    "log": """
        INSERT INTO bare_log (part_id, logged, received, host, level, logger, message, caller, stack, fields)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    """,
    "upload": "INSERT INTO bare_upload (source, requested, received, synced, data) VALUES (?, ?, ?, ?, ?)",
}

COPY = "COPY bare_upload (source, requested, received, synced, data) FROM STDIN"


@dataclass(frozen=True)
class Rate:
    """Rows per second, transactions, and the processor time of this process in seconds."""

    rows: float
    transactions: int
    used: float


def bare(url: str, folder: Path, what: str, count: int, seconds: float) -> Rate:
    """Return the rows per second, with `count` in each transaction, and the processor time of this process."""
    rows: Callable[[int], list[tuple[Any, ...]]] = _logs(count) if what == "log" else _readings(count)
    if url:
        import psycopg

        with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
            for statement in typed(TABLES[what]).split(";")[:-1]:
                connection.execute(statement)
            cursor, insert = connection.cursor(), numbered(INSERTS[what])

            def keep(number: int) -> None:
                with connection.transaction():
                    cursor.executemany(insert, rows(number))

            def copy(number: int) -> None:
                with connection.transaction(), cursor.copy(COPY) as target:
                    for row in rows(number):
                        target.write_row(row)

            return _calls(copy if what == "upload" else keep, seconds, count)
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = FULL")
        file.executescript(TABLES[what])

        def keep_here(number: int) -> None:
            file.execute("BEGIN IMMEDIATE")
            file.executemany(INSERTS[what], rows(number))
            file.execute("COMMIT")

        return _calls(keep_here, seconds, count)


def _calls(keep: Callable[[int], None], seconds: float, count: int) -> Rate:
    done, begin, used = 0, time.perf_counter(), time.process_time()
    while (now := time.perf_counter()) < begin + seconds:
        keep(done)
        done += 1
    return Rate(count * done / (now - begin), done, time.process_time() - used)


def _logs(count: int) -> Callable[[int], list[tuple[Any, ...]]]:
    part, second = "0" * 36, 1_000_000

    def rows(number: int) -> list[tuple[Any, ...]]:
        return [
            (
                *(part, number * second + index, number * second, "bench", "info", "rdk.bench"),
                *(f"message {number:08} of {index}", "{}", "", "[]"),
            )
            for index in range(count)
        ]

    return rows


def _readings(count: int) -> Callable[[int], list[tuple[Any, ...]]]:
    second = 1_000_000

    def rows(number: int) -> list[tuple[Any, ...]]:
        start = number * second
        return [
            (1, start + index, start, start, f'{{"readings": {{"a": {index}.0, "b": {index / 7}, "c": 0.5}}}}')
            for index in range(count)
        ]

    return rows
