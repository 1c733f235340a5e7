"""Verification of signed metadata in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import trio

from agent.releases.chain import Untrusted, pin
from agent.releases.trust import Trust
from agent.releases.verifier import in_process
from schema.errors import ErrorKind, MachineError
from support.worker import Worker
from tests.unit.agent.releases.repository import NOW, Repository

LIBRARIES = ("tuf", "securesystemslib", "cryptography")


def children() -> set[int]:
    tasks = Path("/proc/self/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


async def test_releases_are_verified_and_refused_as_in_the_worker(tmp_path: Path) -> None:
    repository, worker = Repository(), Worker("test verifier")
    pin(tmp_path, repository.files["1.root.json"])
    trust = Trust(tmp_path, worker, in_process)
    async with worker.opened():
        before = children()
        listing = await trust.refresh(repository.fetch, NOW)
        assert [release.custom.version for release in listing.releases] == ["1.0.0"]
        repository.publish("1.0.0", "1.1.0")
        assert len((await trust.refresh(repository.fetch, NOW)).releases) == 2
        with pytest.raises(Untrusted, match="has expired") as caught:
            await trust.refresh(repository.fetch, NOW + timedelta(days=4000))
        assert caught.value.kind is ErrorKind.PERMISSION
        assert "check the clock" in caught.value.remedy
        assert children() == before


async def test_the_first_root_is_pinned_in_the_process(tmp_path: Path) -> None:
    repository, worker = Repository(), Worker("test verifier")
    trust = Trust(tmp_path / "tuf", worker, in_process)
    async with worker.opened():
        assert await trust.pin_first(repository.fetch)
        assert await trust.is_pinned()
        assert len((await trust.refresh(repository.fetch, NOW)).releases) == 1


async def test_errors_of_the_disk_and_missing_roots_arrive_as_what_they_are(tmp_path: Path) -> None:
    repository, worker = Repository(), Worker("test verifier")
    (tmp_path / "file").write_text("")
    async with worker.opened():
        with pytest.raises(MachineError, match=r"root\.json is missing") as missing:
            await Trust(tmp_path / "empty", worker, in_process).refresh(repository.fetch, NOW)
        assert missing.value.kind is ErrorKind.PRECONDITION
        with pytest.raises(NotADirectoryError) as refused:
            await Trust(tmp_path / "file", worker, in_process).refresh(repository.fetch, NOW)
    assert str(tmp_path / "file") in str(refused.value.filename)


async def test_a_killed_process_is_a_failure_that_is_repeated(tmp_path: Path) -> None:
    repository, worker = Repository(), Worker("test verifier")
    pin(tmp_path, repository.files["1.root.json"])
    trust = Trust(tmp_path, worker, in_process)
    before = children()
    killed = False

    async def fetch(name: str, limit: int) -> bytes | None:
        nonlocal killed
        if not killed:
            killed = True
            (child,) = children() - before
            os.kill(child, signal.SIGKILL)
        return await repository.fetch(name, limit)

    async with worker.opened():
        with pytest.raises(MachineError, match="has failed: it has ended") as caught:
            await trust.refresh(fetch, NOW)
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        assert len((await trust.refresh(fetch, NOW)).releases) == 1


async def test_a_cancelled_verification_leaves_no_process(tmp_path: Path) -> None:
    repository, worker = Repository(), Worker("test verifier")
    pin(tmp_path, repository.files["1.root.json"])
    before, fetching = children(), trio.Event()

    async def fetch(name: str, limit: int) -> bytes | None:
        fetching.set()
        await trio.sleep_forever()
        return None

    async with worker.opened(), trio.open_nursery() as nursery:
        nursery.start_soon(Trust(tmp_path, worker, in_process).refresh, fetch, NOW)
        await fetching.wait()
        assert len(children() - before) == 1
        nursery.cancel_scope.cancel()
    assert children() == before


def test_the_libraries_are_not_loaded_by_the_process_that_asks(tmp_path: Path) -> None:
    repository = Repository()
    pin(tmp_path, repository.files["1.root.json"])
    program = f"""
import sys, trio
from datetime import datetime
from pathlib import Path
from agent.releases.verifier import in_process

async def main():
    async with in_process(Path({str(tmp_path)!r})) as run:
        print(await run("open", datetime.fromisoformat({NOW.isoformat()!r})))
        print(await run("add_root", "2.root.json", b"{{}}"))

import agent.app
try:
    trio.run(main)
except Exception as error:
    print(type(error).__name__)
print([name for name in {LIBRARIES!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["1", "Untrusted", "[]"]
