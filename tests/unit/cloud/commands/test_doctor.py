"""`machine-cloud doctor` reports every problem and repairs only what is safe to repair."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cloud.blobs.folder import FolderBlobs
from cloud.domain.upkeep.identity import bind
from cloud.server import cli
from cloud.store import trash
from cloud.store.commands import opened_for_command
from cloud.values.times import now
from tests.helpers.blobs import put, row


class Patient:
    """A cloud with three files."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.data.mkdir(mode=0o700)
        self.database = self.data / "cloud.db"
        self.files = self.data / "files"
        self.keys: list[str] = []

    async def fill(self) -> None:
        async with FolderBlobs(self.files).opened() as blobs, opened_for_command(self.database, "") as store:
            await bind(store, blobs)
            created = [await put(blobs, b"content") for _ in range(3)]
            await store.write(lambda sql: [row(sql, item.key, item.size, item.digest) for item in created])
        self.keys = sorted(element.key for element in created)

    def path(self, number: int) -> Path:
        return self.files / self.keys[number][:2] / self.keys[number]

    def run(self, *options: str) -> Result:
        return CliRunner().invoke(cli.command, ["--data", str(self.data), "doctor", *options])

    def report(self, *options: str) -> tuple[int, Any]:
        done = self.run("--json", *options)
        return done.exit_code, json.loads(done.stdout)

    def checks(self, *options: str) -> list[tuple[str, str]]:
        code, report = self.report(*options)
        assert code == (not report["healthy"])
        assert all(problem["remedy"] for problem in report["problems"])
        return [(result["check"], result["subject"]) for result in report["problems"]]


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    import trio

    created = Patient(tmp_path)
    trio.run(created.fill)
    return created


def test_a_healthy_cloud(patient: Patient) -> None:
    done = patient.run("--digests")
    assert (done.exit_code, "no problems" in done.stdout) == (0, True), done.output
    code, report = patient.report()
    assert (code, report["files"], report["named"], report["unnamed"]) == (0, 3, 3, 0)


def test_missing_and_changed_files_are_reported(patient: Patient) -> None:
    patient.path(0).unlink()
    patient.path(1).write_bytes(b"short")
    patient.path(2).write_bytes(b"c0ntent")
    assert patient.checks() == [("missing", patient.keys[0]), ("size", patient.keys[1])]
    checks = patient.checks("--digests", "--repair")  # none of these problems can be repaired
    assert checks == [("missing", patient.keys[0]), ("size", patient.keys[1]), ("digest", patient.keys[2])]
    assert patient.path(2).read_bytes() == b"c0ntent"


def test_modes_are_repaired(patient: Patient) -> None:
    paths = {patient.data: 0o755, patient.database: 0o644, patient.files: 0o777}
    for options, repaired in ((), False), (("--repair",), True):
        for path, bits in paths.items():
            path.chmod(bits)
        code, report = patient.report(*options)
        assert [(problem["check"], problem["subject"]) for problem in report["problems"]] == [
            ("permissions", str(p)) for p in paths
        ]
        assert (code, [item["repaired"] for item in report["problems"]]) == (not repaired, [repaired] * 3)
    assert patient.checks() == []


def test_files_of_another_cloud_are_adopted_only_with_the_option(patient: Patient) -> None:
    stamp = patient.files / "machine-cloud.json"
    stamp.write_text('{"cloud": "other", "count": 40}')
    assert patient.checks("--repair") == [("identity", str(patient.files))]
    assert "other" in stamp.read_text()
    done = patient.run("--adopt-files")
    assert done.exit_code == 0, done.output
    assert "belong to this database now" in done.stdout
    assert patient.checks() == []


def test_files_without_rows_are_reported(patient: Patient) -> None:
    import trio

    async def spoil() -> None:
        async with opened_for_command(patient.database, "") as store:
            await store.write(lambda sql: sql.run("DELETE FROM files WHERE blob <> ?", patient.keys[0]))
            await store.write(lambda sql: trash.noticed(sql, patient.keys[:2], now()))

    trio.run(spoil)
    code, report = patient.report()
    assert (code, report["named"], report["trash"], report["unnamed"]) == (1, 1, 1, 1)
    assert patient.checks("--repair") == [("trash", patient.keys[0])]
    done = patient.run("--release-unnamed")
    assert done.exit_code == 0
    assert "1 files without a database row will be removed 7 days after" in done.stdout


def test_broken_databases(patient: Patient) -> None:
    whole = patient.database.read_bytes()
    with closing(sqlite3.connect(patient.database)) as connection:
        connection.execute("PRAGMA user_version = 1")
    assert "older version (1)" in patient.run().stdout
    with closing(sqlite3.connect(patient.database)) as connection:
        connection.execute("PRAGMA user_version = 999")
    assert "newer version" in patient.run().stdout
    patient.database.write_bytes(whole[:8192] + bytes(8192) + whole[16384:])
    done = patient.run("--repair")
    assert done.exit_code == 1
    assert "is damaged" in done.stdout
    assert "machine-cloud restore FILE" in done.stdout
    patient.database.write_bytes(b"")
    assert "is empty" in patient.run().stdout
    patient.database.unlink()
    assert "there is no database" in patient.run().stdout
    assert not patient.database.exists()
