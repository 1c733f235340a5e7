"""Copying SQLite into PostgreSQL: every table and row, completely or not at all, and usable afterwards."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloud.domain.configurations import configurations
from cloud.domain.machines import machines
from cloud.domain.machines.logs import LogRecord, append
from cloud.domain.organizations.first import create_owner, first_start
from cloud.domain.organizations.tenants import create_location, locations
from cloud.store.events import Events
from cloud.store.migrations import STEPS, migrate
from cloud.store.moving import BATCH, Table, move, tables
from cloud.store.postgres import PostgresStore
from cloud.store.session import Session
from cloud.store.sql import Sql
from cloud.store.sqlite import SqliteStore
from cloud.values.author import KEY, Author
from cloud.values.times import now
from schema.errors import ErrorKind, MachineError
from tests.postgresql import Cluster

TABLES = {table.name: table for table in tables()}
ROWS = 3  # per table


@pytest.fixture
def url(postgresql: Cluster) -> str:
    return postgresql.fresh()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cloud.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as created:
        migrate(created)
    return path


def nothing(table: str, rows: int) -> None:
    pass


def in_file(path: Path, table: Table) -> list[tuple[Any, ...]]:
    order = ", ".join(table.key or table.columns)
    with closing(sqlite3.connect(path)) as opened:
        return opened.execute(f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {order}").fetchall()


def in_postgres(url: str, *queries: str) -> list[list[tuple[Any, ...]]]:
    def work(sql: Sql) -> list[list[tuple[Any, ...]]]:
        return [[tuple(row.values()) for row in sql.rows(query)] for query in queries]

    with closing(Session(url, "test", None)) as session:
        return session.read(work)


def copied(url: str, table: Table) -> list[tuple[Any, ...]]:
    (item,) = in_postgres(
        url, f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {', '.join(table.key or table.columns)}"
    )
    return item


def fill(path: Path) -> None:
    """Insert rows into every table: distinct values, and valid references."""
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        opened.execute("PRAGMA foreign_keys = ON")
        opened.execute("BEGIN")
        for table in TABLES.values():
            types = {row[1]: row[2] for row in opened.execute(f"PRAGMA table_info({table.name})")}
            references = opened.execute(f"PRAGMA foreign_key_list({table.name})").fetchall()
            for number in range(1, ROWS + 1):
                row = {column: made(types[column], column, number) for column in table.columns}
                for _, _, other, column, theirs, *_ in references:
                    if other == table.name:  # self-reference: the first row refers to the last, which comes later
                        row[column] = made("TEXT", theirs, number - 1 or ROWS) if number != 2 else None
                    else:
                        query = f"SELECT {theirs} FROM {other} ORDER BY rowid LIMIT 1 OFFSET {number - 1}"
                        row[column] = opened.execute(query).fetchone()[0]
                if table.self_references:
                    opened.execute("PRAGMA defer_foreign_keys = ON")
                marks = ", ".join("?" * len(row))
                opened.execute(f"INSERT INTO {table.name} ({', '.join(row)}) VALUES ({marks})", [*row.values()])
        opened.execute("COMMIT")


def made(kind: str, column: str, number: int) -> Any:
    return {
        "INTEGER": number if column == "number" else 2**53 + number,
        "TEXT": f"{column} {number} Ä \N{SNOWMAN}",
        "REAL": number / 3,
        "BLOB": bytes([0, number, 255]),
    }[kind]


def test_the_tables_are_those_of_a_real_database_and_in_order_of_references(url: str, file: Path) -> None:
    with closing(sqlite3.connect(file)) as opened:
        real = {row[0] for row in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert set(TABLES) == real - {"sqlite_sequence"}
        seen: set[str] = set()
        for name in TABLES:
            assert {row[2] for row in opened.execute(f"PRAGMA foreign_key_list({name})")} <= seen | {name}
            seen.add(name)
    assert TABLES["locations"].self_references == ("parent_id",)
    assert {name for name, table in TABLES.items() if table.numbered} >= {"log_entries", "audit", "readings"}


def test_every_table_and_every_row_is_copied(url: str, file: Path) -> None:
    fill(file)
    assert move(file, url, nothing) == dict.fromkeys(TABLES, ROWS)
    (names,) = in_postgres(
        url, "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() "
        "AND table_type = 'BASE TABLE'"
    )  # fmt: skip
    assert {name for (name,) in names} == {*TABLES, "migrations"}
    for table in TABLES.values():
        assert copied(url, table) == in_file(file, table), table.name


def test_generated_ids_continue_after_the_highest_ever_used(url: str, file: Path) -> None:
    fill(file)
    with closing(sqlite3.connect(file)) as opened, opened:
        opened.execute("DELETE FROM audit")
        opened.execute("UPDATE sqlite_sequence SET seq = 41 WHERE name = 'log_entries'")
    move(file, url, nothing)
    values: dict[str, int] = {}

    def work(sql: Sql) -> None:
        for name in (table.name for table in TABLES.values() if table.numbered):
            row = sql.row(f"SELECT nextval(pg_get_serial_sequence('{name}', 'number')) AS number")
            assert row is not None
            values[name] = row["number"]

    with closing(Session(url, "test", lambda news: None)) as session:
        session.write(work)
    assert values.pop("log_entries") == 42
    assert set(values.values()) == {ROWS + 1}, values


def test_a_table_that_never_had_a_row_is_moved_after_an_insert_without_rows(url: str, file: Path) -> None:
    """SQLite then remembers 0 as the highest number, which no sequence of PostgreSQL can have."""
    with closing(sqlite3.connect(file, isolation_level=None)) as opened:
        for table in TABLES.values():
            if table.numbered:
                opened.execute(f"INSERT INTO {table.name} SELECT * FROM {table.name}")
        assert (0,) in opened.execute("SELECT seq FROM sqlite_sequence").fetchall()
    assert set(move(file, url, nothing).values()) == {0}


def test_more_rows_than_one_batch_with_progress(url: str, file: Path) -> None:
    with closing(sqlite3.connect(file)) as opened, opened:
        opened.executemany(
            "INSERT INTO settings VALUES (?, '')", [(f"{number:05}",) for number in range(2 * BATCH + 1)]
        )
    messages: list[tuple[str, int]] = []
    assert move(file, url, lambda table, rows: messages.append((table, rows)))["settings"] == 2 * BATCH + 1
    assert messages == [("settings", BATCH), ("settings", 2 * BATCH), ("settings", 2 * BATCH + 1)]
    assert copied(url, TABLES["settings"]) == in_file(file, TABLES["settings"])


async def test_a_moved_cloud_continues(url: str, tmp_path: Path) -> None:
    file, author = tmp_path / "cloud.db", Author(KEY, "somebody")
    entry = LogRecord(now(), "error", "rdk", "it broke")

    async with SqliteStore(file, Events()).opened() as store:

        def before(sql: Sql) -> tuple[str, str, str]:
            first = create_owner(sql, "Home", now())
            attic = create_location(sql, first.organization, "Attic", first.location, now())
            part = machines.parts(sql, machines.create_machine(sql, attic, "rover", now()))[0].id
            configurations.save(sql, part, {"components": []}, author, now())
            append(sql, part, [entry], now())
            return first.organization, attic, part

        organization, attic, part = await store.write(before)
    move(file, url, nothing)

    async with PostgresStore(url, Events()).opened() as replicated:

        def after(sql: Sql) -> tuple[int, list[int], str]:
            assert first_start(sql, "Home", now()) is None
            revision = configurations.save(sql, part, {"components": [{"name": "a"}]}, author, now())
            append(sql, part, [LogRecord(now(), "error", "rdk", "again")], now())
            numbers = [row["number"] for row in sql.rows("SELECT number FROM log_entries ORDER BY number")]
            inside = {location.id: location.parent_id for location in locations(sql, organization)}
            return revision, numbers, inside[attic]

        revision, numbers, parent = await replicated.write(after)
    assert (revision, numbers) == (3, [1, 2])
    assert parent


# ---- refused copies, which copy nothing


def refused(file: Path, url: str, kind: ErrorKind) -> str:
    with pytest.raises(MachineError) as caught:
        move(file, url, nothing)
    assert caught.value.kind is kind, caught.value
    return str(caught.value)


def test_a_database_that_is_not_empty_is_not_changed(url: str, file: Path) -> None:
    fill(file)
    with closing(Session(url, "test", lambda news: None)) as session:
        move(file, url, nothing)
        session.write(lambda sql: [sql.run(f"DELETE FROM {name}") for name in reversed(TABLES) if name != "audit"])
        said = refused(file, url, ErrorKind.EXISTS)
        assert "rows in the table audit" in said
        assert "createdb" in said
        session.write(lambda sql: sql.run("DELETE FROM audit"))
        assert sum(move(file, url, nothing).values()) == ROWS * len(TABLES)


def test_a_failure_at_the_last_table_leaves_nothing(url: str, file: Path) -> None:
    fill(file)
    with closing(sqlite3.connect(file)) as opened, opened:
        columns = [
            (table.name, row[1])
            for table in TABLES.values()
            for row in opened.execute(f"PRAGMA table_info({table.name})")
            if row[2] == "INTEGER" and not row[5]
        ]
        table, column = columns[-1]
        opened.execute(f"UPDATE {table} SET {column} = 'no number'")
    said = refused(file, url, ErrorKind.PRECONDITION)
    assert "cannot be copied" in said
    assert "no number" in said
    assert not any(copied(url, table) for table in TABLES.values())


def test_a_database_in_use_is_not_moved(url: str, file: Path) -> None:
    with closing(sqlite3.connect(file)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("SELECT * FROM settings").fetchall()
        said = refused(file, url, ErrorKind.PRECONDITION)
        assert "in use" in said
        assert "stop machine-cloud" in said
    assert sum(move(file, url, nothing).values()) == 0


def test_different_schema_versions(url: str, file: Path) -> None:
    for version, said in ((len(STEPS) + 1, "newer version"), (len(STEPS) - 1, "start this machine-cloud with it once")):
        with closing(sqlite3.connect(file)) as opened:
            opened.execute(f"PRAGMA user_version = {version}")
        assert said in refused(file, url, ErrorKind.PRECONDITION)
    with closing(sqlite3.connect(file)) as opened:
        opened.execute(f"PRAGMA user_version = {len(STEPS)}")
    move(file, url, nothing)
    with closing(Session(url, "test", lambda news: None)) as session:
        session.write(lambda sql: sql.run("DELETE FROM migrations WHERE number = ?", len(STEPS)))
        assert "tables of another version" in refused(file, url, ErrorKind.EXISTS)


def test_invalid_and_missing_databases(url: str, tmp_path: Path) -> None:
    assert "--data" in refused(tmp_path / "cloud.db", url, ErrorKind.NOT_FOUND)
    (tmp_path / "cloud.db").write_bytes(b"x" * 5000)
    assert "file is not a database" in refused(tmp_path / "cloud.db", url, ErrorKind.PRECONDITION)


def test_a_missing_server(file: Path) -> None:
    assert "cannot be reached" in refused(file, "postgresql:///cloud?host=/nowhere", ErrorKind.UNAVAILABLE)
