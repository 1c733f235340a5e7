"""Moves a cloud's database from its SQLite file to PostgreSQL. Blocking: for a command.

It is one transaction in PostgreSQL, so no other client sees a partial copy, and after an interruption it can be
repeated from the start.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import psycopg

from cloud.store.migrations import STEPS, migrate, newer
from cloud.store.session import Session, connected, location_of
from cloud.store.session import migrate as migrate_postgres
from cloud.store.sql import Conflict, Sql
from cloud.store.sqlite import opened_exclusively
from schema import ErrorKind, MachineError

BATCH: Final = 200  # rows at once: a row may contain a whole document

Progress = Callable[[str, int], None]
"""Progress callback with the name of a table and the number of rows copied so far."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as created by the migrations."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    self_references: tuple[str, ...]  # columns that refer to other rows of the same table
    numbered: bool  # it has an auto-incremented column `number`


def tables() -> list[Table]:
    """Return all tables, each after those that it refers to."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        migrate(memory)
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
        by_name: dict[str, Table] = {}
        references_to: dict[str, list[str]] = {}
        for name, statement in memory.execute(query).fetchall():
            columns = memory.execute(f"PRAGMA table_info({name})").fetchall()
            references = [(row[2], row[3]) for row in memory.execute(f"PRAGMA foreign_key_list({name})")]
            by_name[name] = Table(
                name,
                tuple(column[1] for column in columns),
                tuple(column[1] for column in columns if column[5]),
                tuple(column for table, column in references if table == name),
                "AUTOINCREMENT" in statement,
            )
            references_to[name] = [table for table, _ in references if table != name]
    return [by_name[name] for name in TopologicalSorter(references_to).static_order()]


def move(database: Path, url: str, progress: Progress) -> dict[str, int]:
    """Copy a cloud's database file into an empty PostgreSQL database; return the number of rows of each table.

    No other process may use the file during the copy. Raise MachineError, with nothing copied, if the file is missing
    or in use, if one of the databases has another version, or if the target is not empty or unavailable.
    """
    if not database.is_file():
        raise MachineError(
            f"there is no database {database}", kind=ErrorKind.NOT_FOUND, remedy="set --data to the cloud's folder"
        )
    try:
        with opened_exclusively(database, "stop machine-cloud, move, then start it with the new database") as source:
            _same_version(database, source.execute("PRAGMA user_version").fetchone()[0])
            _prepare(url)
            with closing(Session(url, "move", lambda news: None)) as session:
                return session.write(lambda sql: _copied(source, sql, url, progress))
    except (psycopg.Error, sqlite3.Error, Conflict) as error:
        raise MachineError(
            f"{database} cannot be copied to {location_of(url)}: {str(error).strip()}", kind=ErrorKind.PRECONDITION
        ) from error


def _same_version(database: Path, version: int) -> None:
    if version > len(STEPS):
        raise newer(version)
    if version < len(STEPS):
        raise MachineError(
            f"{database} has an older version ({version}) than this program ({len(STEPS)})",
            kind=ErrorKind.PRECONDITION,
            remedy="start this machine-cloud with it once, which updates it",
        )


def _prepare(url: str) -> None:
    """Create the tables; MachineError if tables of another version exist, which may belong to another cloud."""
    with closing(connected(url)) as connection:
        if connection.execute("SELECT to_regclass('migrations') AS found").fetchone()["found"] is not None:
            done = connection.execute("SELECT MAX(number) AS number FROM migrations").fetchone()["number"]
            if done is not None and done != len(STEPS):
                raise _occupied(url, f"tables of another version ({done}; this program has {len(STEPS)})")
    migrate_postgres(url)


def _copied(source: sqlite3.Connection, sql: Sql, url: str, progress: Progress) -> dict[str, int]:
    all_tables = tables()
    for table in all_tables:
        if sql.row(f"SELECT 1 AS found FROM {table.name} LIMIT 1") is not None:
            raise _occupied(url, f"rows in the table {table.name}")
    return {table.name: _copied_table(source, sql, table, progress) for table in all_tables}


def _copied_table(source: sqlite3.Connection, sql: Sql, table: Table, progress: Progress) -> int:
    name, count = table.name, 0
    # Filled in afterwards: they may refer to later rows.
    postponed = [table.columns.index(column) for column in table.self_references]
    statement = f"INSERT INTO {name} ({', '.join(table.columns)}) VALUES ({', '.join('?' * len(table.columns))})"
    cursor = source.execute(f"SELECT {', '.join(table.columns)} FROM {name}")
    while rows := cursor.fetchmany(BATCH):
        sql.many(
            statement, [[None if index in postponed else value for index, value in enumerate(row)] for row in rows]
        )
        count += len(rows)
        progress(name, count)
    for column in table.self_references:
        where = " AND ".join(f"{key} = ?" for key in table.key)
        referring = f"SELECT {column}, {', '.join(table.key)} FROM {name} WHERE {column} IS NOT NULL"
        sql.many(f"UPDATE {name} SET {column} = ? WHERE {where}", source.execute(referring).fetchall())
    last = source.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (name,)).fetchone()
    # Includes deleted rows, so that no number is reused; 0 after an INSERT without rows.
    if table.numbered and last is not None and last[0] > 0:
        sql.row("SELECT setval(pg_get_serial_sequence(?, 'number'), ?) AS last", name, last[0])
    copied = sql.row(f"SELECT COUNT(*) AS count FROM {name}")
    if copied is None or copied["count"] != count:
        raise MachineError(f"the copied table {name} does not have all {count} rows", kind=ErrorKind.INTERNAL)
    return count


def _occupied(url: str, what: str) -> MachineError:
    return MachineError(
        f"the database {location_of(url)} is not empty: it has {what}",
        kind=ErrorKind.EXISTS,
        remedy="use an empty one: createdb --encoding UTF8 NAME",
    )
