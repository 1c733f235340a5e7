"""Pinning of the root at the first contact with a cloud, and again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.releases.chain import Untrusted, pin
from agent.releases.transport import Transport
from agent.releases.trust import Fetch, Trust
from agent.releases.web import Web
from support.worker import Worker
from tests.unit.agent.releases.hostile import Server, serving
from tests.unit.agent.releases.repository import NOW, Repository
from uplink.dial import CloudAddress
from uplink.http import Headers

BASE = "/machine/v1/parts/part/releases/metadata"


@asynccontextmanager
async def trusting(folder: Path, repository: Repository | None) -> AsyncIterator[tuple[Trust, Fetch]]:
    """Yield the trust of a machine whose cloud has this repository, and how it fetches metadata."""

    async def sign_in() -> Headers:
        return [("authorization", "Bearer token")]

    files = repository.files if repository is not None else {}
    server = Server({f"{BASE}/{name}": serving(content) for name, content in files.items()})
    worker = Worker("test")
    async with server.opened(), worker.opened():
        web = Web(CloudAddress(server.url, "part", "part", "robot-secret", "secret"), worker, sign_in=sign_in)
        yield Trust(folder, worker), Transport(web, "part").fetch


async def test_the_first_root_is_pinned_once(tmp_path: Path) -> None:
    repository = Repository()
    repository.publish_root()
    async with trusting(tmp_path, repository) as (trust, fetch):
        assert not await trust.is_pinned()
        assert await trust.pin_first(fetch)
        assert not await trust.pin_first(fetch)
        listing = await trust.refresh(fetch, NOW)
        assert [entry.custom.version for entry in listing.releases] == ["1.0.0"]
    other = Repository()
    other.keys = {role: [f"another {role}"] for role in other.keys}
    other.roots = 0
    other.publish_root(by=["another root"])
    other.publish("6.6.6")
    async with trusting(tmp_path, other) as (trust, fetch):
        assert not await trust.pin_first(fetch)
        with pytest.raises(Untrusted):
            await trust.refresh(fetch, NOW)


async def test_without_a_repository_nothing_is_pinned(tmp_path: Path) -> None:
    async with trusting(tmp_path, None) as (trust, fetch):
        assert not await trust.pin_first(fetch)
        assert not await trust.is_pinned()


async def test_a_root_that_is_not_signed_is_not_pinned(tmp_path: Path) -> None:
    repository = Repository()
    repository.files["1.root.json"] = repository.publish_root(by=[])
    async with trusting(tmp_path, repository) as (trust, fetch):
        with pytest.raises(Untrusted, match=r"root\.json to pin"):
            await trust.pin_first(fetch)
        assert not await trust.is_pinned()


async def test_pinning_the_same_root_again_keeps_what_was_seen(tmp_path: Path) -> None:
    repository = Repository()
    root = repository.files["1.root.json"]
    pin(tmp_path, root)
    async with trusting(tmp_path, repository) as (trust, fetch):
        await trust.refresh(fetch, NOW)
    pin(tmp_path, root)
    assert (tmp_path / "timestamp.json").exists()
    repository.publish_root()
    pin(tmp_path, repository.files["2.root.json"])
    assert not (tmp_path / "timestamp.json").exists()
