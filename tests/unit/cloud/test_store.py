"""The store: transactions whole or not at all, grouped commits, events only after a commit."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from cloud.store.events import Events
from cloud.store.migrations import STEPS, migrate, statements
from cloud.store.sql import Conflict, Sql, inserted
from cloud.store.sqlite import SqliteStore
from schema.errors import MachineError


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
async def store(tmp_path: Path, events: Events) -> AsyncIterator[SqliteStore]:
    async with SqliteStore(tmp_path / "cloud.db", events).opened() as opened:
        yield opened


def put(name: str, value: str) -> object:
    return lambda sql: inserted(sql, "settings", {"name": name, "value": value})


def settings(sql: Sql) -> dict[str, str]:
    return {row["name"]: row["value"] for row in sql.rows("SELECT name, value FROM settings")}


async def test_what_was_written_is_read_and_survives(tmp_path: Path, events: Events) -> None:
    path = tmp_path / "cloud.db"
    async with SqliteStore(path, events).opened() as store:
        await store.write(put("a", "1"))
        assert await store.read(settings) == {"a": "1"}
    async with SqliteStore(path, events).opened() as store:
        assert await store.read(settings) == {"a": "1"}


async def test_a_transaction_that_fails_leaves_nothing_and_harms_no_neighbour(store: SqliteStore) -> None:
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


async def test_waiting_writes_share_commits(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[int] = []
    commit = store._commit

    async def counted(group: list[object]) -> None:
        groups.append(len(group))
        await commit(group)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "_commit", counted)
    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(store.write, put(str(number), ""))
    assert sum(groups) == 100
    assert len(groups) <= 3


async def test_a_row_twice_is_a_conflict(store: SqliteStore) -> None:
    await store.write(put("a", "1"))
    with pytest.raises(Conflict):
        await store.write(put("a", "2"))
    assert await store.read(settings) == {"a": "1"}


async def test_reading_changes_nothing(store: SqliteStore) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await store.read(put("a", "1"))


async def test_events_are_told_once_what_they_tell_is_there(store: SqliteStore, events: Events) -> None:
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


async def test_a_busy_listener_hears_of_each_subject_once(events: Events) -> None:
    with events.listening("part") as all_parts, events.listening("part", "x") as only_x:
        for subject in ("x", "y", "x"):
            events.tell("part", subject)
        assert await all_parts.all() == ["x", "y"]
        assert await only_x.next() == "x"


async def test_a_write_that_was_given_up_in_the_queue_is_not_carried_out(store: SqliteStore) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.write(put("never", ""))
    await store.write(put("later", ""))
    assert await store.read(settings) == {"later": ""}


def test_migration_is_done_once_and_refuses_the_future() -> None:
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


async def test_a_folder_that_is_not_there_is_said(tmp_path: Path, events: Events) -> None:
    with pytest.raises(MachineError, match="cannot be opened"):
        async with SqliteStore(tmp_path / "no" / "cloud.db", events).opened():
            pass
