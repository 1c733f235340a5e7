"""A damaged database is refused at the start, and the files of the cloud are private to its user."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio

from cloud.blobs.folder import FolderBlobs
from cloud.server.app import private_data
from cloud.store import soundness
from cloud.store.events import Events
from cloud.store.sqlite import SqliteStore
from schema.errors import ErrorKind, MachineError
from tests.helpers.blobs import put


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def filled(path: Path, rows: int = 4000) -> Path:
    """Create a database with many pages."""
    with closing(sqlite3.connect(path)) as created:
        created.execute("PRAGMA journal_mode = WAL")
        created.execute("CREATE TABLE t (number INTEGER PRIMARY KEY, text TEXT)")
        created.executemany("INSERT INTO t (text) VALUES (?)", [("x" * 100,) for _ in range(rows)])
        created.commit()
    return path


async def opened(path: Path) -> None:
    async with SqliteStore(path, Events()).opened():
        pass


async def test_flipped_bytes_are_refused(tmp_path: Path) -> None:
    path = filled(tmp_path / "cloud.db")
    with path.open("r+b") as file:
        file.seek(8 * 4096)
        file.write(os.urandom(4096))
    before = path.read_bytes()
    with pytest.raises(MachineError, match=r"cloud\.db is damaged: ") as caught:
        await opened(path)
    assert "restore a backup: machine-cloud restore FILE" in caught.value.remedy
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert path.read_bytes() == before


async def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cloud.db"
    path.write_bytes(os.urandom(8192))
    with pytest.raises(MachineError, match="cannot be opened: file is not a database"):
        await opened(path)


def log_of(path: Path) -> bytes:
    """Create a database whose newest row is only in its log, as after a kill, and return the log."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE kept (number INTEGER)")
        connection.execute("INSERT INTO kept VALUES (1)")
        log, main = path.with_name("cloud.db-wal").read_bytes(), path.read_bytes()
    path.write_bytes(main)
    return log


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda log: os.urandom(len(log)), "does not begin"),
        (lambda log: log[:5], "ends after 5 bytes"),
        (lambda log: log[:13] + b"\xff\xff" + log[15:], "checksum"),
    ],
)
async def test_a_broken_log_is_refused(tmp_path: Path, change: object, word: str) -> None:
    assert callable(change)
    path = tmp_path / "cloud.db"
    log = log_of(path)
    wal = tmp_path / "cloud.db-wal"
    wal.write_bytes(change(log))
    broken = wal.read_bytes()
    with pytest.raises(MachineError, match=word) as caught:
        await opened(path)
    assert "machine-cloud restore FILE" in caught.value.remedy
    assert wal.read_bytes() == broken


@pytest.mark.parametrize("log", [None, b"", bytes(4096)])
async def test_a_complete_and_an_empty_log_are_used(tmp_path: Path, log: bytes | None) -> None:
    path = tmp_path / "cloud.db"
    whole = log_of(path)
    (tmp_path / "cloud.db-wal").write_bytes(whole if log is None else log)
    async with SqliteStore(path, Events()).opened() as store:
        tables = await store.read(lambda sql: sql.rows("SELECT * FROM sqlite_master WHERE name = 'kept'"))
    assert len(tables) == (log is None)


async def test_a_long_check_continues_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = filled(tmp_path / "cloud.db")
    monkeypatch.setattr(soundness, "LIMIT", -1.0)
    monkeypatch.setattr(soundness, "_STEPS", 10)
    check = SqliteStore._check_in_background

    async def logged_events() -> list[Any]:
        done = trio.Event()

        async def observed_check(self: SqliteStore) -> None:
            await check(self)
            done.set()

        monkeypatch.setattr(SqliteStore, "_check_in_background", observed_check)
        with structlog.testing.capture_logs() as logs, trio.fail_after(30):
            async with SqliteStore(path, Events()).opened():
                await done.wait()
        return logs

    assert [item["event"].partition(":")[0] for item in await logged_events()] == [
        "the database is large",
        "the check found no damage in the database",
    ]
    with path.open("r+b") as file:
        file.seek(8 * 4096)
        file.write(os.urandom(4096))
    *_, error = await logged_events()
    assert (error["log_level"], "is damaged" in error["event"]) == ("error", True)
    assert "restore" in error["remedy"]


@pytest.mark.parametrize("existing", [False, True])
async def test_the_database_is_private_to_its_user(tmp_path: Path, existing: bool) -> None:
    names = ("cloud.db", "cloud.db-wal", "cloud.db-shm")
    path = tmp_path / "cloud.db"
    with open_umask():
        if existing:
            (tmp_path / "cloud.db-wal").write_bytes(log_of(path))
        async with SqliteStore(path, Events()).opened() as store:
            await store.write(lambda sql: sql.run("CREATE TABLE x (y INTEGER)"))
            assert [mode(tmp_path / name) for name in names] == [0o600] * 3


async def test_files_are_private_to_their_user(tmp_path: Path) -> None:
    with open_umask():
        folder = tmp_path / "files"
        folder.mkdir(mode=0o755)
        async with FolderBlobs(folder).opened() as blobs:
            blob = await put(blobs, b"secret")
            await blobs.put_stamp(b"{}", replace=False)
        assert mode(folder) == mode(folder / blob.key[:2]) == 0o700
        assert mode(folder / blob.key[:2] / blob.key) == mode(folder / "machine-cloud.json") == 0o600


def test_the_permissions_of_an_own_data_folder_are_restricted(tmp_path: Path) -> None:
    with open_umask():
        for name in ("", "cloud.db"):
            folder = tmp_path / f"data{name}"
            folder.mkdir(mode=0o755)
            if name:
                (folder / name).touch()
            private_data(folder)
            assert mode(folder) == 0o700
        shared = tmp_path / "shared"
        shared.mkdir(mode=0o755)
        (shared / "photos").mkdir()
        with pytest.raises(MachineError, match="can be read by other users") as caught:
            private_data(shared)
        assert f"chmod 700 {shared}" in caught.value.remedy
        assert mode(shared) == 0o755
        shared.chmod(0o700)
        private_data(shared)
