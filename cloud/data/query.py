"""Questions in SQL about the readings of one organization, answered from a copy that nothing else can be reached from.

The readings are copied into a SQLite database in memory, in a thread of its own; only SELECT is allowed there, for so
many steps and rows. What people write never reaches the cloud's own database.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final

import msgspec
import trio

from cloud.data.readings import ReadingRecord
from hal.worker import BusWorker
from schema.errors import ErrorKind, MachineError

TABLE: Final = "readings"
COLUMNS: Final = (
    "organization_id",
    "location_id",
    "robot_id",
    "robot_name",
    "part_id",
    "part_name",
    "component_type",
    "component_name",
    "method_name",
    "time_requested",
    "time_received",
    "tags",
    "additional_parameters",
    "data",
)
"""As published. Times are text in UTC, such as 2026-01-31 12:00:00.000000; `tags`, `data` are JSON."""

MAX_READINGS: Final = 250_000  # in the copy: about 200 MiB
MAX_ROWS: Final = 10_000  # of an answer
MAX_STEPS: Final = 2_000_000  # thousands of steps of SQLite's machine: tens of seconds
MAX_BYTES: Final = 40 * 1024 * 1024  # of an answer; a message holds 64 MiB
MAX_VALUE: Final = 16 * 1024 * 1024  # bytes of one value
_EVERY: Final = 1000  # steps between two looks at the counter
_MEMORY: Final = 512 * 1024 * 1024  # bytes that SQLite may take for the copy and the question

_ALLOWED: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_FORBIDDEN: Final = frozenset({"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"})
_STAMP: Final = "%Y-%m-%d %H:%M:%S.%f"
_JSON: Final = frozenset({"tags", "data", "additional_parameters"})
_TIMES: Final = frozenset({"time_requested", "time_received"})

_encode: Final = msgspec.json.Encoder().encode

Row = Mapping[str, Any]


class Question:
    """A copy that is filled and asked: `async with Question().opened() as question`."""

    def __init__(self, steps: int = MAX_STEPS, rows: int = MAX_ROWS) -> None:
        self._steps = steps
        self._rows = rows
        self._left = steps
        self._count = 0
        self._worker = BusWorker("a question in SQL")
        self._connection: sqlite3.Connection

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Question]:
        """A copy without readings, gone when the context is left; what still runs is interrupted."""
        async with self._worker.opened():
            self._connection = await self._worker.run(_empty)
            try:
                yield self
            finally:
                self._connection.interrupt()
                self._worker.post(self._connection.close)

    async def add(self, found: Sequence[ReadingRecord]) -> None:
        """Copy readings; EXHAUSTED if there are too many."""
        self._count += len(found)
        if self._count > MAX_READINGS:
            raise MachineError(
                f"the organization has more than {MAX_READINGS} readings, too many for a question in SQL",
                kind=ErrorKind.EXHAUSTED,
                remedy="export those of one method (ExportTabularData), or let old ones expire",
            )
        await self._worker.run(lambda: _insert(self._connection, found))

    async def ask(self, text: str) -> list[Row]:
        """The rows of the answer. INVALID for what is no SELECT or wrong, EXHAUSTED for what takes too long or has too
        many rows."""
        try:
            return await self._worker.run(lambda: self._answer(text))
        except trio.Cancelled:
            self._connection.interrupt()
            raise

    def _answer(self, text: str) -> list[Row]:
        connection = self._connection
        self._left = self._steps
        connection.set_authorizer(_authorize)
        connection.set_progress_handler(self._progress, _EVERY)
        try:
            cursor = connection.execute(text)
            if cursor.description is None:
                raise MachineError("this is no SELECT", kind=ErrorKind.INVALID, remedy="begin with SELECT or WITH")
            names = [column[0] for column in cursor.description]
            return self._fetched(cursor, names)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise self._explained(error) from None
        finally:
            connection.set_progress_handler(None, 0)
            connection.set_authorizer(None)

    def _fetched(self, cursor: sqlite3.Cursor, names: Sequence[str]) -> list[Row]:
        rows: list[Row] = []
        size = 0
        for row in cursor:
            size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
            if len(rows) >= self._rows or size > MAX_BYTES:
                raise MachineError(
                    f"the answer has more than {self._rows} rows, or {MAX_BYTES} bytes",
                    kind=ErrorKind.EXHAUSTED,
                    remedy="add LIMIT, or ask for sums and averages instead of rows",
                )
            rows.append({name: _natural(name, value) for name, value in zip(names, row, strict=True)})
        return rows

    def _progress(self) -> int:
        self._left -= 1
        return int(self._left < 0)

    def _explained(self, error: Exception) -> MachineError:
        if self._left < 0:
            return MachineError(
                "the question takes too long",
                kind=ErrorKind.EXHAUSTED,
                remedy="ask for a shorter time or fewer joins",
            )
        if isinstance(error, sqlite3.DatabaseError) and "not authorized" in str(error):
            return MachineError(
                "only SELECT is allowed, from the table `readings`",
                kind=ErrorKind.INVALID,
                remedy=f"its columns are {', '.join(COLUMNS)}",
            )
        return MachineError(
            f"the question is not understood: {error}",
            kind=ErrorKind.INVALID,
            remedy=f"it is SQLite's SQL; the table `readings` has {', '.join(COLUMNS)}",
        )


def _empty() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute(f"CREATE TABLE {TABLE} ({', '.join(COLUMNS)})")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA max_page_count = {_MEMORY // 4096}")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    return connection


def _insert(connection: sqlite3.Connection, found: Sequence[ReadingRecord]) -> None:
    marks = ", ".join("?" * len(COLUMNS))
    connection.executemany(f"INSERT INTO {TABLE} VALUES ({marks})", [_row(one) for one in found])


def _row(one: ReadingRecord) -> tuple[str, ...]:
    source = one.source
    return (
        source.organization_id,
        source.location_id,
        source.machine_id,
        source.machine,
        source.part_id,
        source.part,
        source.component_type,
        source.component,
        source.method,
        one.requested.strftime(_STAMP),
        one.received.strftime(_STAMP),
        json.dumps(one.tags),
        source.parameters,
        _encode(one.data).decode(),  # numbers that are not finite are null: SQLite reads JSON
    )


def _authorize(action: int, first: str | None, second: str | None, database: str | None, inner: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FORBIDDEN:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(_JSON, json.loads),
    **dict.fromkeys(_TIMES, lambda text: datetime.fromisoformat(f"{text}+00:00")),
}


def _natural(name: str, value: Any) -> Any:
    """A column of the table as what it stands for, whatever else has its name as it is."""
    parse = _PARSERS.get(name)
    if parse is None or not isinstance(value, str):
        return value
    try:
        return parse(value)
    except ValueError:
        return value
