"""`machine cloud releases` against a real cloud, and a machine that verifies and downloads what it publishes."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio

from agent.releases.chain import Untrusted, pin
from agent.releases.download import ReleaseDownloads
from agent.releases.signed import Signed
from agent.releases.transport import Transport
from agent.releases.trust import Trust
from agent.releases.web import Web
from agent.update.record import Release
from schema.errors import MachineError
from support.worker import Worker
from tests.e2e.agent.support import Part, new_part
from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_command import Terminal
from uplink.dial import CloudAddress

LIMIT = 60.0
PROGRAM = "machine-server"


def release_file(folder: Path, version: str, size: int = 300_000) -> Path:
    """Write a release file with a header."""
    identity = json.dumps({"program": PROGRAM, "version": version, "platform": "linux/x86_64"})
    path = folder / f"{PROGRAM}-v{version}-x86_64"
    path.write_bytes(f"#!/bin/sh\n# machine-release {identity}\n".encode() + os.urandom(size))
    return path


def key_files(*folders: Path) -> list[Path]:
    """Return the files with keys."""
    return [path for folder in folders for path in folder.glob("*.pem")]


@dataclass
class Machine:
    """The part of machine-agent that trusts and downloads releases."""

    part: Part
    transport: Transport
    trust: Trust
    downloads: ReleaseDownloads

    async def listed(self) -> dict[str, Signed]:
        """Refresh, and return the signed releases by version."""
        with trio.fail_after(LIMIT):
            listing = await self.trust.refresh(self.transport.fetch, datetime.now(UTC))
        return {entry.custom.version: entry for entry in listing.releases}

    async def download(self, entry: Signed, file: Path) -> None:
        custom = entry.custom
        origin = entry.path(self.part.id)
        with trio.fail_after(LIMIT):
            await self.downloads.download(
                Release(custom.version, entry.sha256, entry.size, origin, custom.platform), file
            )


@dataclass
class World:
    """A cloud, a person with keys, and a machine that trusts the root.json of the person."""

    terminal: Terminal
    keys: Path
    folder: Path
    machine: Machine

    async def releases(self, command: str, *words: str, status: int = 0, **environment: str) -> str:
        """Run a command of the person."""
        signing = command in ("init", "upload", "promote", "withdraw", "rotate")
        options = ("--keys", str(self.keys)) if signing and "--keys" not in words else ()
        return await self.terminal("releases", command, *words, *options, status=status, **environment)


@asynccontextmanager
async def machine(terminal: Terminal, folder: Path) -> AsyncIterator[Machine]:
    async with terminal.running.client() as client:
        part = await new_part(terminal.running, client, folder)
        address = CloudAddress(f"http://{terminal.running.address}", part.id, part.id, "robot-secret", part.secret)
        worker = Worker("test")
        async with worker.opened():
            web = Web(address, worker)
            yield Machine(part, Transport(web, part.id), Trust(folder / "tuf", worker), ReleaseDownloads(web, worker))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with cloud(tmp_path / "cloud") as running:
        terminal = Terminal(running, tmp_path / "home")
        login = ("login", f"http://{running.address}", "--key-id", running.key[0])
        await terminal(*login, MACHINE_CLOUD_KEY=running.key[1])
        async with machine(terminal, tmp_path) as joined:
            created = World(terminal, tmp_path / "keys", tmp_path, joined)
            await created.releases("init")
            await trio.to_thread.run_sync(pin, tmp_path / "tuf", (created.keys / "root.json").read_bytes())
            yield created


async def test_a_version_is_published_promoted_installed_and_withdrawn(world: World) -> None:
    assert {stat.S_IMODE(path.stat().st_mode) for path in world.keys.iterdir()} == {0o600}
    assert stat.S_IMODE(world.keys.stat().st_mode) == 0o700
    assert await world.machine.listed() == {}
    file = release_file(world.folder, "1.0.0")
    assert "machine-server/1.0.0/linux-x86_64  published in dev" in await world.releases("upload", str(file))
    entry = (await world.machine.listed())["1.0.0"]
    assert entry.custom.channels == ("dev",)
    await world.machine.download(entry, world.folder / "download")
    assert (world.folder / "download").read_bytes() == file.read_bytes()

    assert "is in the channel stable" in await world.releases("promote", PROGRAM, "1.0.0")
    assert "stable already" in await world.releases("promote", PROGRAM, "1.0.0")
    assert set((await world.machine.listed())["1.0.0"].custom.channels) == {"stable", "dev"}
    table = await world.releases("list")
    assert "machine-server  1.0.0" in table
    shown = json.loads(await world.releases("show", PROGRAM, "1.0.0", "--json"))
    assert shown["files"][0]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()

    again = release_file(world.folder, "1.0.0")
    assert "published with another content" in await world.releases("upload", str(again), status=1)
    assert "machine-server/1.1.0" in await world.releases("upload", str(release_file(world.folder, "1.1.0")))
    assert "was withdrawn" in await world.releases("withdraw", PROGRAM, "1.0.0", "--yes")
    assert set(await world.machine.listed()) == {"1.1.0"}
    with pytest.raises(MachineError, match="404"):
        await world.machine.download(entry, world.folder / "withdrawn")
    assert "there is no machine-server 1.0.0" in await world.releases("promote", PROGRAM, "1.0.0", status=1)


async def test_keys_are_replaced_and_older_metadata_is_refused(world: World) -> None:
    await world.releases("upload", str(release_file(world.folder, "1.0.0")))
    await world.machine.listed()
    old = {path.name for path in key_files(world.keys)}
    timestamp = await world.machine.transport.fetch("timestamp.json", 1 << 20)
    said = await world.releases("rotate", "--root-keys", "--targets-keys", "--online-keys")
    assert "new keys of root, targets, the cloud" in said
    for name in old:  # the replaced keys are not needed any more
        (world.keys / name).unlink()
    await world.releases("upload", str(release_file(world.folder, "1.1.0")), "--channel", "stable")
    assert set(await world.machine.listed()) == {"1.0.0", "1.1.0"}

    async def replayed(name: str, limit: int) -> bytes | None:
        return timestamp if name == "timestamp.json" else await world.machine.transport.fetch(name, limit)

    with pytest.raises(Untrusted, match="not signed by enough"):
        await world.machine.trust.refresh(replayed, datetime.now(UTC))
    timestamp = await world.machine.transport.fetch("timestamp.json", 1 << 20)
    await world.releases("upload", str(release_file(world.folder, "1.2.0")))
    assert "1.2.0" in await world.machine.listed()
    with pytest.raises(Untrusted, match="must follow"):
        await world.machine.trust.refresh(replayed, datetime.now(UTC))
    assert "1.2.0" in await world.machine.listed()


async def test_two_people_with_a_passphrase_sign_together(tmp_path: Path) -> None:
    secret: dict[str, Any] = {"MACHINE_RELEASE_PASSPHRASE": "correct horse"}
    both = ("--keys", str(tmp_path / "ada"), "--keys", str(tmp_path / "bob"))
    file = str(release_file(tmp_path, "1.0.0"))
    async with cloud(tmp_path / "cloud") as running:
        terminal = Terminal(running, tmp_path / "home")
        login = ("login", f"http://{running.address}", "--key-id", running.key[0])
        await terminal(*login, MACHINE_CLOUD_KEY=running.key[1])
        await terminal("releases", "init", *both, "--threshold", "2", "--passphrase", **secret)
        assert all(b"ENCRYPTED" in path.read_bytes() for path in key_files(tmp_path / "ada", tmp_path / "bob"))
        said = await terminal("releases", "upload", file, *both, status=2)
        assert "the keys have a passphrase: set MACHINE_RELEASE_PASSPHRASE" in said
        said = await terminal("releases", "upload", file, *both, status=1, MACHINE_RELEASE_PASSPHRASE="no")
        assert "the passphrase of" in said
        said = await terminal("releases", "upload", file, *both[:2], status=1, **secret)
        assert "needs 2 signatures, and the folders have 1" in said
        assert "published in dev" in await terminal("releases", "upload", file, *both, **secret)
        old = set(key_files(tmp_path / "ada", tmp_path / "bob"))
        await terminal("releases", "rotate", "--targets-keys", "--root-keys", *both, **secret)
        new = set(key_files(tmp_path / "ada", tmp_path / "bob")) - old
        assert len(new) == len(old) == 4
        assert all(b"ENCRYPTED" in path.read_bytes() for path in new)
        said = await terminal("releases", "init", *both, status=1, **secret)
        assert "this organization has a release repository" in said


async def test_a_rollout(world: World) -> None:
    await world.releases("upload", str(release_file(world.folder, "1.0.0")))
    version = (PROGRAM, "1.0.0")
    said = await world.releases("rollout", "start", *version, "--percent", "10", "--tag", "lab", "--stop-after", "2")
    assert "10 %" in said
    assert "tag lab" in said
    for command, state in (("pause", "paused"), ("resume", "active"), ("stop", "stopped"), ("finish", "finished")):
        assert state in await world.releases("rollout", command, *version)
    assert "is finished" in await world.releases("rollout", "pause", *version, status=1)
    assert "finished" in await world.releases("rollout", "list")
    assert json.loads(await world.releases("rollout", "show", *version, "--json"))["machines"] == []
    assert "no machine has reported" in await world.releases("show", *version)
