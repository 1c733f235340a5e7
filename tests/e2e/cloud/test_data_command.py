"""`machine cloud data` and `machine cloud datasets`, against a real cloud."""

from __future__ import annotations

import csv
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_command import Terminal

APP = "viam.app.v1.AppService"
SYNC = "viam.app.datasync.v1.DataSyncService"
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def terminal(tmp_path: Path) -> AsyncIterator[Terminal]:
    """Yield a terminal that is logged in to a cloud with one machine, rover, which has uploaded five readings."""
    async with cloud(tmp_path / "cloud") as running:
        user = Terminal(running, tmp_path / "home")
        await user("login", f"http://{running.address}", "--key-id", running.key[0], MACHINE_CLOUD_KEY=running.key[1])
        async with running.client() as client:
            robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
            metadata = {
                "part_id": part,
                "component_type": "rdk:component:sensor",
                "component_name": "t",
                "method_name": "Readings",
                "type": "DATA_TYPE_TABULAR_SENSOR",
                "tags": ["roof"],
            }
            times = [START + timedelta(seconds=number) for number in range(5)]
            contents = [
                {
                    "metadata": {"time_requested": time, "time_received": time},
                    "struct": {"readings": {"t": 20.0 + number, **({"odd": [1]} if number % 2 else {})}},
                }
                for number, time in enumerate(times)
            ]
            await client.call(SYNC, "", "data_capture_upload", metadata=metadata, sensor_contents=contents)
        yield user


async def test_files_from_upload_to_deletion(terminal: Terminal, tmp_path: Path) -> None:
    large, small = tmp_path / "a.bin", tmp_path / "b.txt"
    large.write_bytes(bytes(range(256)) * 1000)
    small.write_text("hello")
    dataset = (await terminal("datasets", "create", "first")).strip()
    said = await terminal("data", "upload", "rover", str(large), str(small), "--tag", "x", "--dataset", dataset, "-q")
    ids = said.split()
    assert len(ids) == 2
    listed = await terminal("data", "ls", "rover")
    assert "a.bin" in listed
    assert "256000" in listed
    assert (await terminal("data", "ls", "-q", "--tag", "x")).split() == ids[::-1], "the newest first"
    assert (await terminal("data", "ls", "-q", "--tag", "y")) == ""
    assert (await terminal("data", "ls", "-q", "-n", "1")).split() == ids[1:]
    (line,) = (await terminal("data", "ls", "--json", "-n", "1")).splitlines()
    assert json.loads(line)["file_name"] == "b.txt"
    assert "2 files written to" in await terminal("data", "export", "rover", "", "--media", str(tmp_path / "got"))
    assert (tmp_path / "got" / "a.bin").read_bytes() == large.read_bytes()
    assert "Delete 1 file?" in await terminal("data", "delete", ids[0], source="n\n", status=1)
    assert await terminal("data", "delete", ids[0], "--yes") == "1 file deleted\n"
    missing = await terminal("data", "delete", ids[0], ids[0], "--yes", status=1)
    assert "0 files deleted" in missing
    assert "1 of 1 ids not found: `machine cloud data ls -q`" in missing
    assert (await terminal("data", "ls", "-q")).split() == ids[1:]


async def test_readings_are_exported_and_deleted(terminal: Terminal, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (await terminal("data", "export", "rover", "t")).splitlines()]
    assert [item["data"]["readings"]["t"] for item in lines] == [20, 21, 22, 23, 24]
    assert lines[0]["tags"] == ["roof"]
    out = tmp_path / "t.csv"
    window = ("--since", "2026-01-01T00:00:01Z", "--until", "2026-01-01T00:00:03Z")
    assert "2 readings written to" in await terminal("data", "export", "rover", "t", "-o", str(out), *window)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(row["readings.t"], row["readings.odd"], row["tags"]) for row in rows] == [
        ("21", "[1.0]", "roof"),
        ("22", "", "roof"),
    ]
    assert rows[0]["time"] == "2026-01-01T00:00:01Z"
    assert "give a new file" in await terminal("data", "export", "rover", "t", "-o", str(out), status=2)
    assert "there is no machine 'rovr'" in await terminal("data", "export", "rovr", "t", status=1)
    assert "readings deleted" in await terminal("data", "delete", "--readings-older-than", "1", "--yes")
    assert await terminal("data", "export", "rover", "t") == ""
    assert "give either ids of files" in await terminal("data", "delete", status=2)


async def test_datasets(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a")
    subject = (await terminal("data", "upload", "rover", str(file), "-q")).strip()
    dataset = (await terminal("datasets", "create", "first")).strip()
    assert "first" in await terminal("datasets", "ls")
    assert "there is no dataset 'frist': use one of 'first'" in await terminal(
        "data", "upload", "rover", str(file), "--dataset", "frist", status=1
    )
    file.write_text("b")
    by_name = (await terminal("data", "upload", "rover", str(file), "-q", "--dataset", "first")).strip()
    assert (await terminal("data", "ls", "-q", "--dataset", "first")).strip() == by_name
    assert await terminal("datasets", "remove", "first", by_name) == "removed\n"
    assert await terminal("data", "delete", by_name, "--yes") == "1 file deleted\n"
    await terminal("datasets", "rename", "first", "second")
    assert json.loads(await terminal("datasets", "ls", "--json"))[0]["name"] == "second"
    assert await terminal("datasets", "add", "second", subject) == "added\n"
    assert (await terminal("data", "ls", "-q", "--dataset", dataset)).strip() == subject
    assert await terminal("datasets", "remove", dataset, subject) == "removed\n"
    assert await terminal("data", "ls", "-q", "--dataset", dataset) == ""
    assert await terminal("datasets", "delete", dataset, "--yes") == "deleted\n"
    assert await terminal("datasets", "ls", "-q") == ""
    assert "create one with" in await terminal("data", "ls", "--dataset", "second", status=1)
    assert (await terminal("data", "ls", "-q")).strip() == subject, "its files stay"
