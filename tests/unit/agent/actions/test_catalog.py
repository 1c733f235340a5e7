"""The releases of the machine's cloud: pinning at the first contact only if the device says so, withdrawn releases."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.actions import catalog
from agent.actions.catalog import ReleaseCatalog
from agent.releases.transport import Transport
from agent.releases.trust import Trust
from agent.releases.web import Web
from agent.update.record import Release
from schema.errors import ErrorKind, MachineError
from support.worker import Worker
from tests.unit.agent.releases.hostile import Server, serving
from tests.unit.agent.releases.repository import NOW, Repository, seed
from uplink.dial import CloudAddress
from uplink.downloads import RESERVE, IncompleteDownload
from uplink.http import Headers

BASE = "/machine/v1/parts/part/releases/metadata"


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock to the time of the repository."""

    class At:
        @staticmethod
        def now(zone: object) -> object:
            return NOW

    monkeypatch.setattr(catalog, "datetime", At)


@asynccontextmanager
async def releases_of(folder: Path, repository: Repository) -> AsyncIterator[tuple[ReleaseCatalog, Server]]:
    async def sign_in() -> Headers:
        return [("authorization", "Bearer token")]

    server = Server({f"{BASE}/{name}": serving(content) for name, content in repository.files.items()})
    worker = Worker("test")
    async with server.opened(), worker.opened():
        web = Web(CloudAddress(server.url, "part", "part", "robot-secret", "secret"), worker, sign_in=sign_in)
        yield ReleaseCatalog(Trust(folder / "tuf", worker), Transport(web, "part"), web, worker, folder), server


def release(version: str, origin: str) -> Release:
    return Release(version, seed(version).hex(), 1000, origin, "linux/aarch64")


async def test_a_root_is_pinned_only_if_the_device_says_so(tmp_path: Path) -> None:
    async with releases_of(tmp_path, Repository()) as (releases, server):
        assert await releases.signed() is None
        assert server.requests == []
        releases.trust_first_root = True
        signed = await releases.signed()
        assert signed is not None
        assert [entry.custom.version for entry in signed] == ["1.0.0"]
        releases.trust_first_root = False
        assert await releases.signed() == signed  # what is pinned stays pinned


async def test_metadata_is_fetched_again_only_if_that_is_asked_for(tmp_path: Path) -> None:
    repository = Repository()
    async with releases_of(tmp_path, repository) as (releases, server):
        releases.trust_first_root = True
        before = await releases.signed()
        repository.publish("1.0.0", "2.0.0")
        server.answers |= {f"{BASE}/{name}": serving(content) for name, content in repository.files.items()}
        count = len(server.requests)
        assert await releases.signed() == before
        assert len(server.requests) == count
        signed = await releases.signed(fresh=True)
        assert signed is not None
        assert [entry.custom.version for entry in signed] == ["1.0.0", "2.0.0"]


async def test_a_release_that_is_no_longer_signed_is_refused(tmp_path: Path) -> None:
    async with releases_of(tmp_path, Repository()) as (releases, _):
        await releases.check(release("9.9.9", "/targets/x"))  # nothing is pinned: the cloud is trusted
        releases.trust_first_root = True
        await releases.check(release("1.0.0", "/targets/x"))
        await releases.check(release("9.9.9", "https://files.test/x"))
        with pytest.raises(MachineError, match=r"9\.9\.9 was withdrawn") as caught:
            await releases.check(release("9.9.9", "/targets/x"))
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_the_disk_stays_free_while_a_file_at_a_url_is_identified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def free_space(part: IncompleteDownload) -> int:
        return RESERVE + (1 << 20) - sum(path.stat().st_size for path in tmp_path.glob("url-*"))

    monkeypatch.setattr(IncompleteDownload, "free_space", free_space)
    async with releases_of(tmp_path, Repository()) as (releases, server):
        server.answers["/large"] = serving(bytes(4 << 20))
        with pytest.raises(MachineError, match="MiB free") as caught:
            await releases.identify(f"{server.url}/large")
        assert caught.value.kind is ErrorKind.EXHAUSTED
        server.answers["/small"] = serving(bytes(1 << 19))
        with pytest.raises(MachineError, match="header"):  # it is not a release, but was read whole
            await releases.identify(f"{server.url}/small")
    assert not [name for name in os.listdir(tmp_path) if name.startswith("url-")]
