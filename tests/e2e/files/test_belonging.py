"""Which files belong to which database: no mismatch deletes anything, and each one is reported with a remedy."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
import trio

from cloud.blobs import Blobs, new_key, sizes
from cloud.blobs.choice import store_of
from cloud.blobs.s3_location import BucketLocation
from cloud.commands.copying import copy
from cloud.commands.options import Options
from cloud.domain.upkeep.identity import adopt, bind, confirm, keep, of
from cloud.domain.upkeep.sweep import Swept, sweep
from cloud.server.app import App, run
from cloud.store.commands import opened_for_command
from cloud.store.sql import Store
from cloud.values.times import now
from nursery_graph import State
from schema.errors import ErrorKind, MachineError
from tests.helpers.blobs import LIMIT, put, row
from tests.postgresql import Cluster
from tests.s3 import S3Server

pytestmark = pytest.mark.usefixtures("_owner")
COUNT = 8
ADOPT = "machine-cloud doctor --adopt-files"


@pytest.fixture(params=["folder", "bucket"])
def files(request: pytest.FixtureRequest, tmp_path: Path, s3: S3Server) -> Path | BucketLocation:
    return tmp_path / "files" if request.param == "folder" else s3.place()


@pytest.fixture
def options(tmp_path: Path, files: Path | BucketLocation) -> Options:
    return Options(data=tmp_path / "data", files_at=files, address="localhost:0")


async def started(options: Options, capsys: pytest.CaptureFixture[str]) -> str:
    """Start a cloud, and stop it after its sweep for unused files; return its error output."""
    app, looked = App(options), trio.Event()
    look = app._sweep

    async def noted(store: Store, blobs: Blobs) -> None:
        await look(store, blobs)
        looked.set()

    app._sweep = noted  # type: ignore[method-assign]

    async def stop() -> None:
        await looked.wait()
        async for snapshot in app.graph.changes():
            if snapshot.nodes["port"].state is State.READY:
                app.graph.stop("the test is over")
                return

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop)
            await run(app)
            nursery.cancel_scope.cancel()
    return capsys.readouterr().err


async def fill(options: Options, count: int = COUNT) -> list[str]:
    """Store files with a row for each; return their keys."""
    keys = sorted(new_key() for _ in range(count))
    async with store_of(options.files) as blobs, opened_for_command(options.database, options.postgres) as store:
        for key in keys:
            await put(blobs, b"x", key=key)
        await store.write(lambda sql: [row(sql, key) for key in keys])
    return keys


async def there(options: Options) -> set[str]:
    async with store_of(options.files) as blobs:
        return set(await sizes(blobs))


async def swept(options: Options, days: float = 0.0) -> Swept:
    async with store_of(options.files) as blobs, opened_for_command(options.database, options.postgres) as store:
        try:
            return await sweep(store, blobs, now() + timedelta(days=days), age=-1)
        except MachineError as error:
            failure = error  # raised outside, because the nursery of the store would wrap it in a group
    raise failure


@pytest.fixture
async def kept(options: Options, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the files of a cloud that was started once."""
    options.data.mkdir(mode=0o700)
    assert await started(options, capsys) == ""
    return await fill(options)


async def refused(options: Options, kept: list[str], capsys: pytest.CaptureFixture[str], *words: str) -> None:
    """Check that the cloud does not start and explains what to do; no file is deleted, then or by a later sweep."""
    said = await started(options, capsys)
    for word in (*words, ADOPT):
        assert word in said
    assert "MachineError" not in said
    assert await there(options) >= set(kept)
    with pytest.raises(MachineError) as caught:
        await swept(options, days=100)
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert await there(options) >= set(kept)


Wrong = Callable[[Options], None]


def zero(options: Options) -> None:
    options.database.write_bytes(b"")


def missing(options: Options) -> None:
    options.database.unlink()


@pytest.mark.parametrize("wrong", [zero, missing])
async def test_an_empty_database_with_existing_files_is_refused(
    options: Options, kept: list[str], capsys: pytest.CaptureFixture[str], wrong: Wrong
) -> None:
    wrong(options)
    await refused(options, kept, capsys, "the database is new", str(options.files))


async def test_a_new_database_with_files_of_a_cloud_without_id_is_refused(
    options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    options.data.mkdir()
    keys = await fill(options)
    options.database.unlink()
    await refused(options, keys, capsys, "none of the files there is in the database", str(options.files))
    assert "key id" not in capsys.readouterr().out  # no cloud was created


async def test_the_database_of_another_cloud_is_refused(
    options: Options, kept: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Options(data=tmp_path / "other", address="localhost:0")
    assert await started(other, capsys) == ""
    shutil.copy(other.database, options.database)
    await refused(options, kept, capsys, "belong to the cloud", "and the database to the cloud")


async def test_two_clouds_with_one_store_are_refused(
    options: Options, kept: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(options, data=tmp_path / "other")
    await refused(other, kept, capsys, "the database is new")
    assert await started(options, capsys) == ""  # the first keeps working


async def test_two_clouds_that_start_on_one_store_at_once_do_not_both_continue(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have seen an empty place. The one whose stamp was overwritten notices it before it deletes anything."""
    other = replace(options, data=tmp_path / "other")
    for item in (options, other):
        item.data.mkdir()
    async with store_of(options.files) as blobs:
        mark = blobs.put_stamp

        async def late(content: bytes, *, replace: bool) -> bool:
            with monkeypatch.context() as undone:
                undone.setattr(blobs, "put_stamp", mark)
                async with opened_for_command(other.database, "") as second:
                    await bind(second, blobs)
            return await mark(content, replace=replace)

        async with opened_for_command(options.database, "") as first:
            monkeypatch.setattr(blobs, "put_stamp", late)
            with pytest.raises(MachineError, match="belong to the cloud"):
                await bind(first, blobs)


async def test_an_older_database_starts_and_deletes_nothing(
    options: Options, kept: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A backup was restored: newer files have no row."""
    before = tmp_path / "before"
    with closing(sqlite3.connect(options.database)) as now_, closing(sqlite3.connect(before)) as copied:
        now_.backup(copied)
    assert await started(options, capsys) == ""
    later = await fill(options, 1)
    for ending in ("", "-wal", "-shm"):
        options.database.with_name(f"cloud.db{ending}").unlink(missing_ok=True)
    shutil.copy(before, options.database)
    with structlog.testing.capture_logs() as logs:
        assert await started(options, capsys) == ""
    errors = [entry for entry in logs if entry["log_level"] == "error"]
    assert "older than" in errors[0]["event"]
    assert ADOPT in errors[0]["remedy"]
    with pytest.raises(MachineError, match="older than"):
        await swept(options, days=100)
    assert await there(options) == {*kept, *later}
    async with store_of(options.files) as blobs, opened_for_command(options.database, "") as store:
        await adopt(store, blobs)
    assert await swept(options) == Swept(0, noticed=1, total=COUNT + 1)  # the person confirmed that this is correct
    assert await swept(options, days=7.1) == Swept(1, total=COUNT + 1)


async def test_a_newer_database_starts_and_reports_missing_files(
    options: Options, kept: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The files are older than the database, as after a restored snapshot."""
    async with store_of(options.files) as blobs:
        stamp = await blobs.stamp()
        assert await started(options, capsys) == ""
        gone = (await fill(options, 2))[0]
        await blobs.delete(gone)
        await blobs.put_stamp(stamp, replace=True)
    with structlog.testing.capture_logs() as logs:
        assert await started(options, capsys) == ""
    errors = [entry for entry in logs if entry["log_level"] == "error"]
    assert "1 of 10 files that were looked for" in errors[0]["event"]
    assert "restore the files" in errors[0]["remedy"]
    assert await there(options) >= set(kept)


async def test_a_database_of_a_newer_version_is_refused(
    options: Options, kept: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(options.database)) as database:
        database.execute("PRAGMA user_version = 999")
    said = await started(options, capsys)
    assert "newer version" in said
    assert "start the newer machine-cloud" in said
    assert await there(options) == set(kept)


async def test_a_database_without_its_rows_deletes_nothing(
    options: Options, kept: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    async with opened_for_command(options.database, "") as store:
        await store.write(lambda sql: sql.run("DELETE FROM files"))
    with structlog.testing.capture_logs() as logs:
        assert await swept(options) == Swept(0, noticed=COUNT, held=COUNT, total=COUNT)
        assert await swept(options, days=100) == Swept(0, held=COUNT, total=COUNT)
        assert await there(options) == set(kept)
        if not isinstance(options.files, Path):
            return  # objects of the test bucket cannot be made older: only a folder can show the message
        for path in options.files.glob("??/*"):
            os.utime(path, (time.time() - 7200,) * 2)  # older than the time within which an upload gets its row
        await started(options, capsys)
    errors = [entry for entry in logs if entry["log_level"] == "error"]
    assert f"uses only 0 of {COUNT} files" in errors[0]["event"]
    assert "doctor --release-unnamed" in errors[0]["remedy"]
    assert await there(options) == set(kept)


async def test_a_store_that_has_lost_its_id_is_refused(
    options: Options, kept: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The disk is not mounted, or --files names the wrong place."""
    async with store_of(options.files) as blobs:
        await unmarked(blobs)
    await refused(options, kept, capsys, "machine-cloud.json", "mounted")


async def unmarked(blobs: Blobs) -> None:
    if hasattr(blobs, "location"):
        await blobs._client.call("DELETE", "machine-cloud.json")  # type: ignore[attr-defined]
    else:
        (Path(blobs.where) / "machine-cloud.json").unlink()


async def test_an_unreadable_id_is_refused(
    options: Options, kept: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    async with store_of(options.files) as blobs:
        await blobs.put_stamp(b"{", replace=True)
    await refused(options, kept, capsys, "is not valid")


async def test_a_cloud_from_before_ids_gets_an_id(
    options: Options, kept: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    async with store_of(options.files) as blobs, opened_for_command(options.database, "") as store:
        await unmarked(blobs)
        await store.write(lambda sql: sql.run("DELETE FROM settings WHERE name = 'cloud'"))
        shutil.rmtree(options.data / "training")  # it contains the id, too
        assert await started(options, capsys) == ""
        await confirm(store, blobs)
        assert await there(options) == set(kept)
        # killed between the two stamps
        await unmarked(blobs)
        identity = await store.read(of)
        assert identity is not None
        await store.write(lambda sql: keep(sql, replace(identity, count=0)))
        assert await started(options, capsys) == ""


async def test_a_cloud_from_before_ids_gets_no_id_on_an_empty_store(
    options: Options, kept: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its disk is not mounted."""
    async with store_of(options.files) as blobs, opened_for_command(options.database, "") as store:
        await unmarked(blobs)
        await store.write(lambda sql: sql.run("DELETE FROM settings WHERE name = 'cloud'"))
        for key in kept:
            await blobs.delete(key)
    await refused(options, [], capsys, f"none of {COUNT} files in the database is there", "mounted")


async def test_deleted_files_stay_for_seven_days_for_backups(options: Options, kept: list[str], tmp_path: Path) -> None:
    backup = tmp_path / "before"
    shutil.copy(options.database, backup)
    async with opened_for_command(options.database, "") as store:
        from cloud.domain.data import files

        assert await store.write(lambda sql: files.delete(sql, kept, now())) == COUNT
    assert await swept(options, days=6.9) == Swept(0, total=COUNT)
    assert await there(options) == set(kept)
    for ending in ("-wal", "-shm"):
        options.database.with_name(f"cloud.db{ending}").unlink(missing_ok=True)
    spoilt = tmp_path / "spoilt"
    shutil.copy(options.database, spoilt)
    shutil.copy(backup, options.database)
    async with store_of(options.files) as blobs, opened_for_command(options.database, "") as store:
        assert await store.read(lambda sql: len(sql.rows("SELECT * FROM files"))) == COUNT
        await adopt(store, blobs)
    assert await swept(options, days=100) == Swept(0, total=COUNT)
    shutil.copy(spoilt, options.database)
    async with store_of(options.files) as blobs, opened_for_command(options.database, "") as store:
        await adopt(store, blobs)
    assert await swept(options, days=7.1) == Swept(COUNT, total=COUNT)
    assert await there(options) == set()


async def test_a_file_with_a_row_again_leaves_the_trash(options: Options, kept: list[str]) -> None:
    from cloud.store import trash

    async with opened_for_command(options.database, "") as store:
        await store.write(lambda sql: trash.put(sql, [*kept[:2], new_key()], now() - timedelta(days=30)))
    assert await swept(options) == Swept(0, total=COUNT)
    async with opened_for_command(options.database, "") as store:
        assert await store.read(lambda sql: sql.rows("SELECT * FROM trash")) == []


async def test_a_copy_has_the_id_and_does_not_touch_other_clouds(
    options: Options, kept: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = replace(options, files_at=tmp_path / "copy")
    async with store_of(options.files) as first, store_of(target.files) as other:
        assert (await copy(first, other)).files == COUNT
        assert (await copy(first, other)).files == 0
    assert await started(target, capsys) == ""
    stranger = Options(data=tmp_path / "stranger", address="localhost:0")
    assert await started(stranger, capsys) == ""
    async with store_of(options.files) as first, store_of(stranger.files) as other:
        with pytest.raises(MachineError, match="belongs to the cloud") as caught:
            await copy(first, other)
        assert await sizes(other) == {}
        assert caught.value.kind is ErrorKind.PRECONDITION
        with pytest.raises(MachineError, match="belongs to the cloud"):
            await copy(other, first)
    async with store_of(options.files) as first, store_of(tmp_path / "unmarked") as other:
        await put(other, b"foreign")
        with pytest.raises(MachineError, match="contains files that do not belong to this cloud"):
            await copy(first, other)


@pytest.mark.parametrize("wrong", ["emptied", "swapped"])
async def test_an_emptied_or_exchanged_postgresql_database_is_refused(
    options: Options, postgresql: Cluster, capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    url, other = postgresql.fresh(), postgresql.fresh()
    options = replace(options, postgres=url)
    options.data.mkdir()
    assert await started(options, capsys) == ""
    keys = await fill(options)
    if wrong == "emptied":
        schema = url.rpartition("%3D")[2]
        async with opened_for_command(options.database, url) as store, store_of(options.files) as blobs:
            tables = await store.read(
                lambda sql: [
                    item["name"]
                    for item in sql.rows("SELECT tablename AS name FROM pg_tables WHERE schemaname = ?", schema)
                    if item["name"] != "migrations"
                ]
            )
            await store.write(lambda sql: sql.run(f"TRUNCATE {', '.join(tables)} CASCADE"))
            with pytest.raises(MachineError, match="the database is new"):  # also while it runs
                await sweep(store, blobs, now() + timedelta(days=100))
        await refused(options, keys, capsys, "the database is new")
    else:
        data = options.data.with_name("elsewhere")
        elsewhere = Options(data=data, postgres=other, files_at=data / "files", address="localhost:0")
        assert await started(elsewhere, capsys) == ""
        await refused(replace(options, postgres=other), keys, capsys, "and the database to the cloud")
    assert await there(options) == set(keys)
