"""The store: atomic transactions, grouped commits, events only after a commit."""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from cloud.store import sqlite
from cloud.store.dialect import numbered, of_many, typed
from cloud.store.events import Events
from cloud.store.migrations import STEPS, migrate, statements
from cloud.store.postgres import PostgresStore
from cloud.store.session import ALONE, COPIED
from cloud.store.sql import Conflict, Row, Sql, Store, inserted
from cloud.store.sqlite import SqliteStore
from schema.errors import ErrorKind, MachineError
from tests.postgresql import Cluster


@pytest.fixture
def events() -> Events:
    return Events()


Make = Callable[[], AbstractAsyncContextManager[Store]]


@pytest.fixture(params=["sqlite", "postgresql"])
def make(request: pytest.FixtureRequest, tmp_path: Path, events: Events) -> Make:
    """Return a function that opens a store, each time on the same database."""
    if request.param == "sqlite":
        return lambda: SqliteStore(tmp_path / "cloud.db", events).opened()
    url = request.getfixturevalue("postgresql").fresh()
    return lambda: PostgresStore(url, events).opened()


@pytest.fixture
async def store(make: Make) -> AsyncIterator[Store]:
    async with make() as opened:
        yield opened


THINGS = "CREATE TABLE things (number INTEGER PRIMARY KEY AUTOINCREMENT, i INTEGER, t TEXT, r REAL, b BLOB)"


def put(name: str, value: str) -> object:
    return lambda sql: inserted(sql, "settings", {"name": name, "value": value})


def settings(sql: Sql) -> dict[str, str]:
    return {row["name"]: row["value"] for row in sql.rows("SELECT name, value FROM settings")}


async def test_written_rows_are_read_back_and_survive_a_restart(make: Make) -> None:
    async with make() as store:
        await store.write(put("a", "1"))
        assert await store.read(settings) == {"a": "1"}
    async with make() as store:
        assert await store.read(settings) == {"a": "1"}


async def test_a_failed_transaction_leaves_nothing_and_affects_no_other(store: Store) -> None:
    def half(sql: Sql) -> None:
        inserted(sql, "settings", {"name": "half", "value": ""})
        raise ValueError("no")

    caught: list[str] = []

    async def failing() -> None:
        try:
            await store.write(half)
        except ValueError as error:
            caught.append(str(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.write, put("before", ""))
        nursery.start_soon(failing)
        nursery.start_soon(store.write, put("after", ""))
    assert caught == ["no"]
    assert await store.read(settings) == {"before": "", "after": ""}


async def test_waiting_writes_share_commits(tmp_path: Path, events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    async with SqliteStore(tmp_path / "cloud.db", events).opened() as store:
        await _share(store, monkeypatch)


async def _share(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[int] = []
    writing = sqlite._writing

    def counted(connection: sqlite3.Connection, following: Any, group: list[Any]) -> None:
        writing(connection, following, group)
        groups.append(len(group))

    monkeypatch.setattr(sqlite, "_writing", counted)
    monkeypatch.setattr(sqlite, "HOLD", 60.0)
    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(store.write, put(str(number), ""))
    assert sum(groups) == 100
    assert len(groups) <= 3


async def test_a_full_disk_is_a_temporary_error(tmp_path: Path, events: Events) -> None:
    async with SqliteStore(tmp_path / "cloud.db", events).opened() as store:
        pages = await store._writer.run(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
        await store._writer.run(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages + 3}"))
        heard: list[MachineError] = []
        for number in range(6):
            try:
                await store.write(put(str(number), "x" * 5000))
            except MachineError as error:
                heard.append(error)
        assert heard
        assert {item.kind for item in heard} == {ErrorKind.UNAVAILABLE}
        assert "database or disk is full" in str(heard[0])
        kept = await store.read(settings)
        assert len(kept) + len(heard) == 6
        await store._writer.run(lambda connection: connection.execute("PRAGMA max_page_count = 1000000"))
        await store.write(put("again", ""))
        assert await store.read(settings) == {**kept, "again": ""}


async def test_a_grown_write_ahead_log_shrinks_again(
    tmp_path: Path, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long read, such as a backup, keeps later writes in the log."""
    monkeypatch.setattr("cloud.store.sqlite.WAL_LIMIT", 100_000)
    log = tmp_path / "cloud.db-wal"
    async with SqliteStore(tmp_path / "cloud.db", events).opened() as store:
        with closing(sqlite3.connect(tmp_path / "cloud.db", isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT * FROM settings").fetchall()
            for number in range(20):
                await store.write(put(str(number), "x" * 250_000))
            assert log.stat().st_size > 5_000_000
        for number in range(20, 23):
            await store.write(put(str(number), "x"))
        assert log.stat().st_size <= 100_000
        assert len(await store.read(settings)) == 23


async def test_checkpoints_run_next_to_the_writer(
    tmp_path: Path, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "WAL_LIMIT", 1 << 40)  # no commit reaches the limit
    path = tmp_path / "cloud.db"
    async with SqliteStore(path, events).opened() as store:
        before = path.stat().st_size
        await store.write(put("large", "x" * sqlite.LOG))
        while path.stat().st_size < before + sqlite.LOG:
            await trio.testing.wait_all_tasks_blocked(0.01)


@pytest.mark.parametrize("call", ["read", "write"])
async def test_file_errors_are_not_statement_errors(tmp_path: Path, events: Events, call: str) -> None:
    def not_there(sql: Sql) -> None:
        sqlite3.connect(tmp_path / "nowhere" / "cloud.db")

    def wrong(sql: Sql) -> None:
        sql.rows("SELECT 1 FROM nowhere")

    async with SqliteStore(tmp_path / "cloud.db", events).opened() as store:
        with pytest.raises(MachineError) as caught:
            await getattr(store, call)(not_there)
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            await getattr(store, call)(wrong)


@pytest.mark.parametrize("call", ["read", "write"])
async def test_exhausted_resources_of_postgresql_are_a_temporary_error(
    postgresql: Cluster, events: Events, call: str
) -> None:
    def large(sql: Sql) -> object:
        for name, value in (("temp_file_limit", "64"), ("work_mem", "64")):  # kilobytes
            sql.rows("SELECT set_config(?, ?, true)", name, value)
        return sql.rows("SELECT number FROM generate_series(1, 100000) AS number ORDER BY -number")

    async with PostgresStore(postgresql.fresh(), events).opened() as store:
        with pytest.raises(MachineError, match="temp_file_limit") as caught:
            await getattr(store, call)(large)
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        assert await store.read(settings) == {}


async def test_a_duplicate_row_is_a_conflict(store: Store) -> None:
    await store.write(put("a", "1"))
    with pytest.raises(Conflict):
        await store.write(put("a", "2"))
    assert await store.read(settings) == {"a": "1"}


async def test_a_conflict_ends_its_transaction(store: Store) -> None:
    await store.write(put("a", "1"))

    def swallowed(sql: Sql) -> None:
        with suppress(Conflict):
            inserted(sql, "settings", {"name": "a", "value": "2"})

    def going_on(sql: Sql) -> None:
        swallowed(sql)
        inserted(sql, "settings", {"name": "b", "value": "2"})

    for work in (swallowed, going_on):
        with pytest.raises(RuntimeError, match="ON CONFLICT"):
            await store.write(work)
    assert await store.read(settings) == {"a": "1"}


async def test_a_reference_to_nothing_is_a_conflict(store: Store) -> None:
    with pytest.raises(Conflict):
        await store.write(
            lambda sql: inserted(sql, "part_secrets", {**dict.fromkeys(("id", "part_id", "secret"), "x"), "created": 0})
        )


async def test_values_are_read_back_unchanged(store: Store) -> None:
    def work(sql: Sql) -> list[Row]:
        sql.run(typed(THINGS) if sql.skip_locked else THINGS)
        insert = "INSERT INTO things (i, t, r, b) VALUES (?, ?, ?, ?)"
        sql.many(insert, [(2**62, "ü? %s '", 0.1, b"\0\xff"), (None, None, None, None), (True, "", 1.0, b"")])
        return sql.rows("SELECT * FROM things ORDER BY number")

    rows = await store.write(work)
    assert [tuple(row.values()) for row in rows] == [
        (1, 2**62, "ü? %s '", 0.1, b"\0\xff"),
        (2, None, None, None, None),
        (3, 1, "", 1.0, b""),
    ]

    def sums(sql: Sql) -> Row | None:
        return sql.row("SELECT SUM(i) AS whole, AVG(r) AS mean, COUNT(*) AS count FROM things WHERE number > ?", 1)

    result = await store.read(sums)
    assert result == {"whole": 1, "mean": 1.0, "count": 2}
    assert result is not None
    assert type(result["whole"]) is int


async def test_texts_are_ordered_by_code_points(store: Store) -> None:
    def work(sql: Sql) -> list[str]:
        for name in ("b", "B", "a", "ä", "_", "Z", "é"):
            inserted(sql, "settings", {"name": name, "value": ""})
        return [row["name"] for row in sql.rows("SELECT name FROM settings ORDER BY name")]

    assert await store.write(work) == sorted(("b", "B", "a", "ä", "_", "Z", "é"))


async def test_a_row_is_overwritten(store: Store) -> None:
    def work(sql: Sql) -> list[Row]:
        again = (
            "INSERT INTO settings (name, value) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING value"
        )
        return [*sql.rows(again, "a", "1"), *sql.rows(again, "a", "2")]

    assert await store.write(work) == [{"value": "1"}, {"value": "2"}]


async def test_transactions_are_serializable(store: Store) -> None:
    """Each transaction stores the number of existing rows: all numbers must differ."""

    def work(sql: Sql) -> None:
        count = sql.row("SELECT COUNT(*) AS count FROM settings")
        assert count is not None
        inserted(sql, "settings", {"name": f"{secrets.token_hex(4)}", "value": str(count["count"])})

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(store.write, work)
    assert sorted(map(int, (await store.read(settings)).values())) == list(range(20))


async def test_reading_changes_nothing(store: Store) -> None:
    with pytest.raises(Exception, match=r"read-?only"):
        await store.read(put("a", "1"))


async def test_a_long_read_does_not_delay_others(store: Store) -> None:
    end = threading.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.read, lambda sql: end.wait(60))
        await trio.testing.wait_all_tasks_blocked()
        try:
            with trio.fail_after(30):
                assert await store.read(settings) == {}
        finally:
            end.set()


async def test_readers_of_cancelled_callers_are_reused(store: Store) -> None:
    end = threading.Event()
    with trio.move_on_after(0.05):
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(store.read, lambda sql: end.wait(60))
    end.set()
    with trio.fail_after(30):
        for _ in range(10):
            assert await store.read(settings) == {}


async def test_events_are_sent_after_the_commit(store: Store, events: Events) -> None:
    def telling(sql: Sql) -> None:
        inserted(sql, "settings", {"name": "a", "value": ""})
        sql.notify("setting", "a")

    def failing(sql: Sql) -> None:
        sql.notify("setting", "b")
        raise ValueError

    with events.listening("setting") as listener, events.listening("other") as other:
        with pytest.raises(ValueError, match=r"^$"):
            await store.write(failing)
        await store.write(telling)
        assert await listener.next() == "a"
        assert await store.read(settings) == {"a": ""}
        for listening in (listener, other):
            with trio.move_on_after(0.01) as limit:
                await listening.next()
            assert limit.cancelled_caught


async def test_other_replicas_get_every_event_whatever_its_text(postgresql: Cluster) -> None:
    url, odd = postgresql.fresh(), ["it's", "a\\'; COMMIT; --", "$1 %s %%", '"\n"', "ü", "x" * 500]

    def telling(sql: Sql) -> None:
        for subject in odd:
            sql.notify("odd", subject)

    others = Events()
    async with PostgresStore(url, Events()).opened() as store, PostgresStore(url, others).opened():
        with others.listening("odd") as listener:
            for _ in range(12):  # psycopg prepares statements that it has executed five times
                await store.write(telling)
                received = set[str]()
                with trio.fail_after(30):
                    while received != set(odd):
                        received |= set(await listener.all())
                        assert received <= set(odd)


async def test_a_busy_listener_gets_each_subject_once(events: Events) -> None:
    with events.listening("part") as all_parts, events.listening("part", "x") as only_x:
        for subject in ("x", "y", "x"):
            events.notify("part", subject)
        assert await all_parts.all() == ["x", "y"]
        assert await only_x.next() == "x"


async def test_a_write_cancelled_in_the_queue_is_not_executed(store: Store) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.write(put("never", ""))
    await store.write(put("later", ""))
    assert await store.read(settings) == {"later": ""}


def test_migration_runs_once_and_refuses_newer_versions() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    migrate(connection)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(STEPS),)
    connection.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    with pytest.raises(MachineError, match="newer version"):
        migrate(connection)


def test_statements_have_no_comments() -> None:
    assert statements("CREATE TABLE a ( -- one; two\n b TEXT);\n\nDROP TABLE a") == [
        "CREATE TABLE a ( \n b TEXT)",
        "DROP TABLE a",
    ]


async def test_a_missing_folder_is_reported(tmp_path: Path, events: Events) -> None:
    with pytest.raises(MachineError, match="cannot be opened"):
        async with SqliteStore(tmp_path / "no" / "cloud.db", events).opened():
            pass


def test_question_marks_get_numbers_but_not_in_quotes() -> None:
    assert numbered("SELECT ? FROM a WHERE b = '? it''s ?' AND \"c?\" = ? -- ?\nAND d = ?") == (
        "SELECT $1 FROM a WHERE b = '? it''s ?' AND \"c?\" = $2 -- ?\nAND d = $3"
    )


@pytest.mark.parametrize(
    ("statement", "two"),
    [
        ("INSERT INTO a (b, c) VALUES (?, ?)", "INSERT INTO a (b, c) VALUES (?, ?), (?, ?)"),
        ("\n INSERT INTO a (b)\n VALUES (?)\n", "\n INSERT INTO a (b)\n VALUES (?), (?)\n"),
        (
            "INSERT INTO a (b) VALUES (?) ON CONFLICT (b, c) DO NOTHING",
            "INSERT INTO a (b) VALUES (?), (?) ON CONFLICT (b, c) DO NOTHING",
        ),
        ("INSERT INTO a (b) VALUES (?) ON CONFLICT (b) DO UPDATE SET b = excluded.b", None),
        ("INSERT INTO a (b, c) VALUES (?, 1)", None),
        ("INSERT INTO a (b) VALUES (?) RETURNING b", None),
        ("UPDATE a SET b = ? WHERE c = ?", None),
        ("DELETE FROM a WHERE b = ?", None),
    ],
)
def test_which_statements_insert_many_rows_at_once(statement: str, two: str | None) -> None:
    result = of_many(statement)
    assert (result.of(2) if result is not None else None) == two


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 499, 500, 501, 1203])
async def test_many_rows_come_in_order_and_all_or_none(store: Store, count: int) -> None:
    statement = "INSERT INTO settings (name, value) VALUES (?, ?)"
    rows = [(f"{number:05}", str(number)) for number in range(count)]
    await store.write(lambda sql: sql.many(statement, rows))
    assert await store.read(settings) == dict(rows)
    with pytest.raises(Conflict):
        await store.write(lambda sql: sql.many(statement, [("x", ""), ("x", "")]))
    assert await store.read(settings) == dict(rows)


async def test_many_rows_have_the_same_values_as_few(store: Store) -> None:
    texts = ["", "\\", "\\N", "\\.", "a\tb", "a\nb", "a\r\nb", '{"a":"\\u0000\\n"}', "ü😀\u2028", "'\"", " x ", None]
    numbers = [0.1, -0.0, 5e-324, 1.7976931348623157e308, 3.0, None]
    binary = [b"", bytes(range(256)), b"\\x41", None]
    rows = [
        (2**62 - number, texts[number % 12], numbers[number % 6], binary[number % 4]) for number in range(COPIED * 2)
    ]

    def work(sql: Sql) -> list[Row]:
        sql.run(typed(THINGS) if sql.skip_locked else THINGS)
        sql.many("INSERT INTO things (i, t, r, b) VALUES (?, ?, ?, ?)", rows)
        return sql.rows("SELECT i, t, r, b FROM things ORDER BY number")

    assert [tuple(row.values()) for row in await store.write(work)] == rows
    whole = [(True, "a\0b", 1.0, b"")] * COPIED
    insert = "INSERT INTO things (i, t, r, b) VALUES (?, ?, ?, ?)"
    await store.write(lambda sql: sql.many(insert, whole))
    rows_of_true = await store.read(lambda sql: sql.rows("SELECT t FROM things WHERE i = 1"))
    assert {row["t"] for row in rows_of_true} <= {"a\0b", "a\N{SYMBOL FOR NULL}b"}
    assert len(rows_of_true) == COPIED


def test_columns_get_types_but_not_names_and_texts() -> None:
    table = "CREATE TABLE integers (number INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT DEFAULT 'TEXT', r REAL, B BLOB)"
    assert typed(table) == (
        "CREATE TABLE integers (number BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, "
        "a TEXT COLLATE \"C\" DEFAULT 'TEXT', r DOUBLE PRECISION, B BYTEA)"
    )
    assert typed("CREATE INDEX a ON b (c)") == "CREATE INDEX a ON b (c)"


ROW = "INSERT INTO settings (name, value) VALUES (?, ?)"
CHANGES: dict[str, Callable[[Sql], object]] = {
    "run": lambda sql: sql.run(ROW, "a", ""),
    "many": lambda sql: sql.many(ROW, [("a", "")]),
    "row": lambda sql: sql.row(f"{ROW} RETURNING name", "a", ""),
    "rows": lambda sql: sql.rows(f"{ROW} RETURNING name", "a", ""),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_transaction_asks_for_a_row_once_until_it_changes_something(store: Store, change: str) -> None:
    def asked(sql: Sql) -> list[Row | None]:
        return [sql.row("SELECT random() AS x") for _ in range(2)]

    def work(sql: Sql) -> tuple[list[Row | None], list[Row | None]]:
        before = asked(sql)
        CHANGES[change](sql)
        return before, asked(sql)

    assert len({str(row) for row in await store.read(asked)}) == 1
    before, after = await store.write(work)
    assert len({str(row) for row in before}) == 1
    assert len({str(row) for row in (before[0], *after)}) == 3


async def test_a_transaction_with_which_others_always_interfere_ends(store: Store) -> None:
    """A change of thousands of machines reads what each of them writes all the time."""
    token, attempts = trio.lowlevel.current_trio_token(), 0
    has_read, interfered = trio.Event(), threading.Event()
    await store.write(put("count", "0"))

    def long(sql: Sql) -> None:
        nonlocal attempts
        attempts += 1
        value = settings(sql)["count"]
        interfered.clear()
        token.run_sync_soon(has_read.set)
        interfered.wait(0.5)  # while it is alone, no other transaction runs
        sql.run("UPDATE settings SET value = ? WHERE name = 'count'", f"{value}, long")

    async def interfere() -> None:
        nonlocal has_read
        while True:
            await has_read.wait()
            has_read = trio.Event()
            await store.write(lambda sql: sql.run("UPDATE settings SET value = value || '+' WHERE name = 'count'"))
            interfered.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(interfere)
        with trio.fail_after(30):
            await store.write(long)
        nursery.cancel_scope.cancel()
    assert attempts == (ALONE + 1 if isinstance(store, PostgresStore) else 1)
    assert "long" in (await store.read(settings))["count"]
