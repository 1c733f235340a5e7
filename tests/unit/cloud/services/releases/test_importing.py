"""Imports of the cloud's own programs: from files, from a build, in part, and after an interruption."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import trio

from cloud.domain.releases import imports
from cloud.server.memory import MemoryCloud
from cloud.services.releases import importing, sources
from cloud.services.releases.release_messages import ReleaseImport
from cloud.services.releases.sources import Sources
from schema import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.release_help import opened, service
from tools.release.inputs import _TOOLS
from uplink.releases import PROGRAMS

BUILDER = """
import json, pathlib, sys
machine, out = sys.argv[2], pathlib.Path(sys.argv[4])
out.mkdir(parents=True, exist_ok=True)
print("unpacking", flush=True)
for program in ("machine-agent", "machine-server"):
    header = json.dumps({"program": program, "version": "1.0.0", "platform": f"linux/{machine}"})
    (out / f"{program}-v1.0.0-{machine}").write_text(f"#!/bin/sh\\n# machine-release {header}\\nbuilt\\n")
if machine == BROKEN:
    sys.exit("packages are not reachable")
"""


def content(program: str, version: str = "1.0.0", machine: str = "x86_64", rest: str = "") -> bytes:
    header = json.dumps({"program": program, "version": version, "platform": f"linux/{machine}"})
    return f"#!/bin/sh\n# machine-release {header}\n{rest}\n".encode()


def write(folder: Path, *machines: str, rest: str = "") -> Sources:
    folder.mkdir(exist_ok=True)
    for machine in machines:
        for program in PROGRAMS:
            (folder / f"{program}-v1.0.0-{machine}").write_bytes(content(program, machine=machine, rest=rest))
    return Sources(folder, None, "1.0.0")


def checkout(folder: Path, broken: str = "") -> Path:
    """Create sources whose build is a small program."""
    builder = folder / sources.BUILDER
    builder.parent.mkdir(parents=True)
    for package in (builder.parent, builder.parent.parent):
        (package / "__init__.py").touch()
    builder.write_text(BUILDER.replace("BROKEN", repr(broken)))
    return folder


async def imported(cloud: MemoryCloud, places: Sources) -> ReleaseImport:
    """Run an import, and return its result."""
    calls, owner = service(cloud), cloud.first.organization
    started = await calls.start_release_import(owner)
    assert started.state == "waiting"
    assert await importing.run_next(cloud.cloud, places)
    return await calls.wait_for_release_import(owner, started.number)


async def channels(cloud: MemoryCloud) -> dict[str, list[str]]:
    listed = await service(cloud).list_releases(cloud.first.organization)
    return {f"{target.program} {target.version} {target.platform}": target.channels for target in listed.targets}


async def test_files_are_published(cloud: MemoryCloud, tmp_path: Path) -> None:
    result = await imported(cloud, write(tmp_path / "r", "x86_64", "aarch64"))
    assert (result.state, result.notes) == ("done", [])
    assert result.step == "version 1.0.0 is ready for linux/x86_64 and linux/aarch64"
    assert set(map(tuple, (await channels(cloud)).values())) == {("dev", "stable")}
    assert len(await channels(cloud)) == 4


async def test_one_platform_is_better_than_none(cloud: MemoryCloud, tmp_path: Path) -> None:
    places = write(tmp_path / "r", "x86_64")
    (places.folder / "machine-agent-v1.0.0-aarch64").write_bytes(content("machine-agent", machine="aarch64"))
    result = await imported(cloud, places)
    assert result.state == "done"
    assert [note.platform for note in result.notes] == ["linux/aarch64"]
    assert "machine-server-v1.0.0-aarch64 into" in result.notes[0].remedy
    assert len(await channels(cloud)) == 2  # an agent without a server is of no use


async def test_without_files_the_reason_and_the_remedy_are_stated(cloud: MemoryCloud, tmp_path: Path) -> None:
    result = await imported(cloud, Sources(tmp_path / "absent", None, "1.0.0"))
    assert (result.state, len(result.notes)) == ("failed", 2)
    assert all("does not run from its sources" in note.reason and str(tmp_path) in note.remedy for note in result.notes)
    assert (await service(cloud).list_releases(cloud.first.organization)).metadata == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (b"not a release", "no header"),
        (content("machine-server", "2.0.0"), "is machine-server 2.0.0"),
        (content("machine-server", machine="aarch64"), "linux/aarch64"),
    ],
)
async def test_files_that_are_not_what_they_say_are_refused(
    cloud: MemoryCloud, tmp_path: Path, wrong: bytes, words: str
) -> None:
    places = write(tmp_path / "r", "x86_64")
    (places.folder / "machine-server-v1.0.0-x86_64").write_bytes(wrong)
    result = await imported(cloud, places)
    assert result.state == "failed"
    assert words in result.notes[0].reason
    assert await channels(cloud) == {}


async def test_a_version_has_one_content(cloud: MemoryCloud, tmp_path: Path) -> None:
    await imported(cloud, write(tmp_path / "r", "x86_64"))
    before = await channels(cloud)
    assert (await imported(cloud, write(tmp_path / "r", "x86_64"))).state == "done"
    result = await imported(cloud, write(tmp_path / "r", "x86_64", "aarch64", rest="other"))
    assert result.state == "failed"
    assert "published with another content" in result.notes[0].reason
    assert await channels(cloud) == before


async def test_an_import_updates_no_machine(cloud: MemoryCloud, tmp_path: Path) -> None:
    await imported(cloud, write(tmp_path / "r", "x86_64"))
    folder = tmp_path / "newer"
    folder.mkdir()
    for program in PROGRAMS:
        (folder / f"{program}-v1.1.0-x86_64").write_bytes(content(program, "1.1.0"))
    assert (await imported(cloud, Sources(folder, None, "1.1.0"))).state == "done"
    assert (await channels(cloud))["machine-server 1.1.0 linux/x86_64"] == ["dev"]


async def test_programs_are_built_from_the_sources(
    cloud: MemoryCloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "TOOLS", {})
    folder = tmp_path / "data"
    places = Sources(folder, checkout(tmp_path / "c", broken="aarch64"), "1.0.0")
    result = await imported(cloud, places)
    assert result.state == "done", result.notes
    assert [note.platform for note in result.notes] == ["linux/aarch64"]
    assert "packages are not reachable" in result.notes[0].reason
    assert sorted(path.name for path in folder.iterdir()) == [
        "build",
        "machine-agent-v1.0.0-x86_64",
        "machine-server-v1.0.0-x86_64",
    ]


async def test_missing_tools_are_named(cloud: MemoryCloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sources.TOOLS == _TOOLS
    monkeypatch.setattr(sources, "TOOLS", {"surely-absent": "a-package"})
    result = await imported(cloud, Sources(tmp_path, checkout(tmp_path / "c"), "1.0.0"))
    assert "apt-get install a-package" in result.notes[0].remedy


async def test_a_lease_keeps_others_away_until_it_ends(cloud: MemoryCloud, clock: Clock, tmp_path: Path) -> None:
    places = write(tmp_path / "r", "x86_64")
    await service(cloud).start_release_import(cloud.first.organization)
    assert await cloud.cloud.store.write(lambda sql: imports.claim(sql, clock()))  # by a process that crashes
    assert not await importing.run_next(cloud.cloud, places)
    clock.now += imports.LEASE + timedelta(seconds=1)
    assert await importing.run_next(cloud.cloud, places)
    state = await service(cloud).wait_for_release_import(cloud.first.organization, 0)
    assert state.state == "done"


async def test_the_node_works_on_requests(cloud: MemoryCloud, tmp_path: Path) -> None:
    places, owner = write(tmp_path / "r", "x86_64"), cloud.first.organization
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(importing.run, cloud.cloud, places))
        state = await service(cloud).start_release_import(owner)
        while state.state != "done":
            state = await service(cloud).wait_for_release_import(owner, state.number)
        nursery.cancel_scope.cancel()
    assert len(await channels(cloud)) == 2


async def test_with_keys_of_people_nothing_is_imported(cloud: MemoryCloud) -> None:
    person = await opened(cloud, "1.0.0")
    with pytest.raises(MachineError, match="people of this organization hold the keys") as caught:
        await service(cloud).start_release_import(person.owner)
    assert caught.value.kind is ErrorKind.PRECONDITION
