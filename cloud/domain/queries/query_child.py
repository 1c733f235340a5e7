"""Child process that executes one SQL query.

Its standard input has frames with the settings, rows of the table, and finally the query; its standard output is the
result. Before it reads any row, it limits its CPU time and memory, and its ability to open files, so that a query that
exploits SQLite finds no other data. It has few imports, because it starts for every query.
"""

from __future__ import annotations

import json
import marshal
import os
import resource
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, BinaryIO, Final

from cloud.domain.queries.bson import encode

SETTINGS, ROWS, QUERY = b"s", b"r", b"q"  # kinds of frames: kind, length in four bytes, content
ANSWER, REFUSAL = b"+", b"-"  # first byte of the output; rows as BSON follow, or kind, message and remedy as JSON

LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: 16 * 1024 * 1024,  # bytes in one value
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 64 * 1024,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 100_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 64,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 100,  # an inserted row needs one for each column
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
"""Run-time limits of SQLite, see sqlite.org/limits.html."""

_ALLOWED: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_FORBIDDEN: Final = frozenset({"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"})
_JSON: Final = frozenset({"tags", "data", "additional_parameters"})
_TIMES: Final = frozenset({"time_requested", "time_received"})
NICE: Final = 10  # lower priority than the calls of others


class Refused(Exception):
    """Kind (a value of ErrorKind), message and remedy of an error reply."""


def main() -> None:
    """Execute the query on standard input."""
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    frames = _frames(stdin)
    settings = marshal.loads(next(frames)[1])
    connection = _opened(settings["table"], settings["columns"], settings["memory"])
    _confine(settings["cpu"], settings["memory"])
    insert = f"INSERT INTO {settings['table']} VALUES ({', '.join('?' * len(settings['columns']))})"
    try:
        for kind, content in frames:
            if kind == ROWS:
                connection.executemany(insert, marshal.loads(content))
            else:
                stdout.write(ANSWER + b"".join(rows(connection, content.decode(), settings)))
                break
    except Refused as refused:
        stdout.write(REFUSAL + json.dumps(refused.args).encode())
    except MemoryError:
        stdout.write(REFUSAL + json.dumps(_needs_memory().args).encode())
    stdout.flush()
    os._exit(0)  # skip cleanup


def _frames(source: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    while len(head := source.read(5)) == 5:
        yield head[:1], source.read(int.from_bytes(head[1:], "big"))


def _opened(table: str, columns: Sequence[str], memory: int) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA max_page_count = {memory // 4096}")
    return connection


def _confine(cpu: int, memory: int) -> None:
    """Set hard limits for the rest of the process."""
    json.loads(b'{"a": ["\\u00fc", 1.5]}')  # trigger late imports while files can be opened
    datetime.fromisoformat("2026-01-01 00:00:00.000000+00:00")
    for limited, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 3),  # standard streams only; no other file can be opened
    ):
        resource.setrlimit(limited, (value, value))


def rows(connection: sqlite3.Connection, query: str, settings: Mapping[str, Any]) -> list[bytes]:
    """Return the rows of the result as BSON; Refused."""
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)
    connection.set_authorizer(_authorize)
    columns = ", ".join(settings["columns"])
    try:
        cursor = connection.execute(query)
        if cursor.description is None:
            raise Refused("invalid", "this is not a SELECT statement", "begin with SELECT or WITH")
        names = [column[0] for column in cursor.description]
        return _fetched(cursor, names, settings["rows"], settings["bytes"])
    except (sqlite3.Error, sqlite3.Warning) as error:
        if "not authorized" in str(error):
            text = f"only SELECT is allowed, from the table `{settings['table']}`"
            raise Refused("invalid", text, f"its columns are {columns}") from None
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_FULL):
            raise _needs_memory() from None
        text = f"write it in the SQL of SQLite; the columns of the table `{settings['table']}` are {columns}"
        raise Refused("invalid", f"the query is not valid: {error}", text) from None
    except ValueError as error:
        raise Refused("invalid", f"a value of the result cannot be sent: {error}", "convert it to text") from None


def _fetched(cursor: sqlite3.Cursor, names: Sequence[str], max_rows: int, max_bytes: int) -> list[bytes]:
    rows: list[bytes] = []
    size = 0
    for row in cursor:
        rows.append(encode({name: _natural(name, value) for name, value in zip(names, row, strict=True)}))
        size += len(rows[-1])
        if len(rows) > max_rows or size > max_bytes:
            raise Refused(
                "exhausted",
                f"the result has more than {max_rows} rows, or {max_bytes} bytes",
                "add LIMIT, or select sums and averages instead of rows",
            )
    return rows


def _needs_memory() -> Refused:
    return Refused("exhausted", "the query needs too much memory", "select fewer rows, or shorter texts")


def _authorize(action: int, first: str | None, second: str | None, database: str | None, inner: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FORBIDDEN:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(_JSON, json.loads),
    **dict.fromkeys(_TIMES, lambda text: datetime.fromisoformat(f"{text}+00:00")),
}


def _natural(name: str, value: Any) -> Any:
    """Parse a value of a table column with JSON or a time; return other values unchanged."""
    parse = _PARSERS.get(name)
    if parse is None or not isinstance(value, str):
        return value
    try:
        return parse(value)
    except (ValueError, RecursionError):
        return value
