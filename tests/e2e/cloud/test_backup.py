"""Backup and restore through the command line."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import tarfile
from contextlib import closing
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from cloud.server import cli
from cloud.store.migrations import migrate
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import cloud
from tests.postgresql import Cluster

APP = "viam.app.v1.AppService"
SYNC = "viam.app.datasync.v1.DataSyncService"
DATA = "viam.app.data.v1.DataService"


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cloud.server.cli", *words], capture_output=True, text=True, timeout=60, check=False
    )


async def test_a_backup_of_a_running_cloud_is_restored(tmp_path: Path) -> None:
    data, file = str(tmp_path / "data"), tmp_path / "backup.tar"
    async with cloud(tmp_path) as running:
        key, place = running.key, running.facts["location"]
        async with running.client() as client:
            robot = await client.call(APP, "", "new_robot", name="kept", location=place)
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
            first = await upload(client, part, b"first")
            created = command("--data", data, "backup", str(file))
            assert created.returncode == 0, created.stderr
            assert "1 files" in created.stdout
            later = await upload(client, part, b"later")
            await client.call(APP, "", "new_robot", name="later", location=place)
        again = command("--data", data, "backup", str(file))
        assert again.returncode == 1
        assert "exists" in again.stderr
        busy = command("--data", data, "restore", str(file))
        assert busy.returncode == 1
        assert "in use" in busy.stderr
        await running.stop()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    done = command("--data", data, "restore", str(file))
    assert done.returncode == 0, done.stderr
    assert "cloud.db.before-restore-1" in done.stdout
    assert "files.before-restore-1" in done.stdout
    async with cloud(tmp_path) as running, running.client(key) as client:
        assert [item["name"] for item in await client.call(APP, "", "list_robots", location_id=place)] == ["kept"]
        answer = await client.call(DATA, "", "binary_data_by_ids", binary_data_ids=[first], include_binary=True)
        assert [element["binary"] for element in answer["data"]] == [b"first"]
        with pytest.raises(MachineError) as caught:
            await client.call(DATA, "", "binary_data_by_ids", binary_data_ids=[later], include_binary=True)
        assert caught.value.kind is ErrorKind.NOT_FOUND
    whole = file.read_bytes()
    for damage in (
        whole[:5000],
        whole[: len(whole) // 2],
        b"",
        b"x" * 20000,
        whole.replace(b"cloud.db", b"cloud.no", 1),
    ):
        file.write_bytes(damage)
        damaged = command("--data", data, "restore", str(file))
        assert damaged.returncode == 1
        assert "backup.tar is not a backup" in damaged.stderr
    assert not list((tmp_path / "data").glob("*.restoring"))
    async with cloud(tmp_path) as running, running.client(key) as client:
        assert len(await client.call(APP, "", "list_robots", location_id=place)) == 1


async def upload(client: ApiClient, part: str, content: bytes) -> str:
    """Upload a file of a machine; return its id."""
    sent = await client.call(
        SYNC, "", "file_upload", part_id=part, type="FILE", file_name="a.txt", contents=[{"data": content}]
    )
    return str(sent["binary_data_id"])


def test_with_postgresql_its_own_programs_are_named(tmp_path: Path) -> None:
    for word, program in (("backup", "pg_dump"), ("restore", "pg_restore")):
        (tmp_path / "b.tar").touch()
        done = command("--data", str(tmp_path), "--database", "postgresql://h/d", word, str(tmp_path / "b.tar"))
        assert done.returncode == 2
        assert program in done.stderr


def test_a_damaged_database_is_replaced(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "b.tar"
    data.mkdir()
    with closing(sqlite3.connect(data / "cloud.db", isolation_level=None)) as created:
        migrate(created)
    assert command("--data", str(data), "backup", str(file)).returncode == 0
    (data / "cloud.db").write_bytes(b"no database" * 1000)
    done = command("--data", str(data), "restore", str(file))
    assert done.returncode == 0, done.stderr
    assert "cloud.db.before-restore-1" in done.stdout


async def test_a_cloud_moves_to_postgresql(tmp_path: Path, postgresql: Cluster) -> None:
    data, url = str(tmp_path / "data"), postgresql.fresh()
    move = ("--data", data, "move", "--to", url)
    async with cloud(tmp_path) as running:
        key, place = running.key, running.facts["location"]
        async with running.client() as client:
            robot = await client.call(APP, "", "new_robot", name="kept", location=place)
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
            file = await upload(client, part, b"first")
        busy = command(*move)
        assert busy.returncode == 1
        assert "in use" in busy.stderr
        await running.stop()
    done = command(*move)
    assert done.returncode == 0, done.stderr
    assert f"--files {data}/files" in done.stdout
    async with cloud(tmp_path, "--database", url) as running, running.client(key) as client:
        assert not running.facts, "no key of a new cloud is printed"
        assert [item["name"] for item in await client.call(APP, "", "list_robots", location_id=place)] == ["kept"]
        await client.call(APP, "", "new_robot", name="later", location=place)
        answer = await client.call(DATA, "", "binary_data_by_ids", binary_data_ids=[file], include_binary=True)
        assert [element["binary"] for element in answer["data"]] == [b"first"]
    again = command(*move)
    assert again.returncode == 1
    assert "is not empty" in again.stderr


def test_the_target_of_a_move_is_one_postgresql_address(tmp_path: Path) -> None:
    other = CliRunner().invoke(cli.command, ["--data", str(tmp_path), "move", "--to", "cloud.db"])
    assert other.exit_code == 2
    assert "postgresql://" in other.output
    both = CliRunner().invoke(cli.command, ["--database", "postgresql://h/a", "move", "--to", "postgresql://h/b"])
    assert both.exit_code == 2
    assert "leave out --database" in both.output


def test_an_invalid_database_address_is_refused(tmp_path: Path) -> None:
    done = command("--data", str(tmp_path), "--database", "cloud.db")
    assert done.returncode == 2
    assert "postgresql://" in done.stderr


def test_an_archive_with_strange_names_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    for name in ("../x", "/etc/x", "files/../../x", "files/aa/b/c", "x"):
        with tarfile.open(file, "w") as archive:
            archive.addfile(tarfile.TarInfo(name), BytesIO())
        done = command("--data", str(tmp_path / "data"), "restore", str(file))
        assert done.returncode == 1
        assert "it contains" in done.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["b.tar", "data"]


def test_without_a_database_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    done = command("--data", str(tmp_path), "backup", str(tmp_path / "b.tar"))
    assert done.returncode == 1
    assert "--data" in done.stderr
    assert not (tmp_path / "b.tar").exists()


def test_help_lists_the_commands() -> None:
    done = command("--help")
    assert done.returncode == 0
    for word in ("--data", "--listen", "backup", "restore", "move"):
        assert word in done.stdout
