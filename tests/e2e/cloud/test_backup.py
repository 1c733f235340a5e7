"""Backup and restore by the command line."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

from tests.e2e.cloud.process import cloud

APP = "viam.app.v1.AppService"


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cloud.cli", *words], capture_output=True, text=True, timeout=60, check=False
    )


async def test_a_backup_of_a_running_cloud_is_restored(tmp_path: Path) -> None:
    data, file = str(tmp_path / "data"), tmp_path / "backup.db"
    async with cloud(tmp_path) as running:
        key, place = running.key, running.facts["location"]
        async with running.client() as client:
            await client.call(APP, "", "new_robot", name="kept", location=place)
            made = command("--data", data, "backup", str(file))
            assert made.returncode == 0, made.stderr
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
    assert "before-restore-1" in done.stdout
    async with cloud(tmp_path) as running, running.client(key) as client:
        assert [one["name"] for one in await client.call(APP, "", "list_robots", location_id=place)] == ["kept"]
    file.write_bytes(file.read_bytes()[:5000])
    damaged = command("--data", data, "restore", str(file))
    assert damaged.returncode == 1
    assert "backup.db" in damaged.stderr
    async with cloud(tmp_path) as running, running.client(key) as client:
        assert len(await client.call(APP, "", "list_robots", location_id=place)) == 1


def test_without_a_database_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    done = command("--data", str(tmp_path), "backup", str(tmp_path / "b.db"))
    assert done.returncode == 1
    assert "--data" in done.stderr
    assert not (tmp_path / "b.db").exists()


def test_help_tells_what_there_is() -> None:
    done = command("--help")
    assert done.returncode == 0
    for word in ("--data", "--listen", "backup", "restore"):
        assert word in done.stdout
