"""The trusted metadata against a cloud that lies: a machine installs only what its organization signed."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import trio

from agent.releases import trust
from agent.releases.chain import Untrusted, pin
from agent.releases.trust import Trust
from schema.errors import ErrorKind, MachineError
from support.worker import Worker
from tests.unit.agent.releases.repository import NOW, Repository
from uplink.releases import MAX_METADATA


@pytest.fixture
def repository() -> Repository:
    return Repository()


@pytest.fixture
async def client(tmp_path: Path, repository: Repository) -> AsyncIterator[Trust]:
    pin(tmp_path, repository.files["1.root.json"])
    worker = Worker("test trust")
    async with worker.opened():
        yield Trust(tmp_path, worker)


async def versions(client: Trust, repository: Repository, *, days: float = 0) -> list[str]:
    result = await client.refresh(repository.fetch, NOW + timedelta(days=days))
    assert result.skipped == ()
    return [release.custom.version for release in result.releases]


async def refused(client: Trust, repository: Repository, text: str, *, days: float = 0) -> None:
    with pytest.raises(Untrusted, match=text) as caught:
        await versions(client, repository, days=days)
    assert caught.value.remedy


async def test_the_signed_releases_are_returned(client: Trust, repository: Repository) -> None:
    assert await client.is_pinned()
    assert await versions(client, repository) == ["1.0.0"]
    repository.publish("1.0.0", "1.1.0")
    assert await versions(client, repository) == ["1.0.0", "1.1.0"]


async def test_a_withdrawn_release_is_not_returned(client: Trust, repository: Repository) -> None:
    repository.publish("1.0.0", "1.1.0")
    await versions(client, repository)
    repository.publish("1.0.0")
    assert await versions(client, repository) == ["1.0.0"]


async def test_only_what_changed_is_fetched(client: Trust, repository: Repository) -> None:
    await versions(client, repository)
    repository.asked.clear()
    await versions(client, repository)
    assert repository.asked == ["2.root.json", "timestamp.json"]


async def test_without_a_pinned_root_nothing_is_trusted(tmp_path: Path, repository: Repository) -> None:
    worker = Worker("test trust")
    async with worker.opened():
        client = Trust(tmp_path / "empty", worker)
        assert not await client.is_pinned()
        with pytest.raises(MachineError) as caught:
            await versions(client, repository)
    assert caught.value.kind is ErrorKind.PRECONDITION


@pytest.mark.parametrize(("days", "file"), [(1.1, "timestamp"), (7.1, "timestamp"), (731, "root")])
async def test_expired_metadata_is_refused(client: Trust, repository: Repository, days: float, file: str) -> None:
    await versions(client, repository)
    await refused(client, repository, f"{file}.json has expired", days=days)


async def test_an_expired_snapshot_under_a_new_timestamp_is_refused(client: Trust, repository: Repository) -> None:
    from cloud.domain.releases.metadata import sign_timestamp

    await versions(client, repository)
    later = NOW + timedelta(days=8)
    snapshot = repository.files["1.snapshot.json"]
    repository.files["timestamp.json"] = sign_timestamp(repository._seed("timestamp"), 2, snapshot, later)
    await refused(client, repository, "1.snapshot.json has expired", days=8)


async def test_expired_targets_under_new_online_metadata_are_refused(client: Trust, repository: Repository) -> None:
    repository.publish_root(now=NOW + timedelta(days=300))
    repository.renew(now=NOW + timedelta(days=366))
    await refused(client, repository, "1.targets.json has expired", days=366)


async def test_a_replayed_timestamp_is_refused(client: Trust, repository: Repository) -> None:
    old = dict(repository.files)
    repository.publish("1.1.0")
    await versions(client, repository)
    repository.files.update(old)
    await refused(client, repository, "timestamp.json is not the version that must follow")


async def test_older_targets_signed_with_the_keys_of_the_cloud_are_refused(
    client: Trust, repository: Repository
) -> None:
    repository.publish("1.1.0")
    await versions(client, repository)
    repository.targets = 1
    repository.renew()
    await refused(client, repository, r"3\.snapshot\.json is not the version that must follow")


async def test_a_refused_file_leaves_the_former_state_usable(client: Trust, repository: Repository) -> None:
    await versions(client, repository)
    former = dict(repository.files)
    repository.publish("6.6.6", by=["thief"])
    await refused(client, repository, r"2\.targets\.json is not signed by enough")
    repository.files = former | {"timestamp.json": repository.files["timestamp.json"]}
    repository.publish("1.1.0", targets_version=3)
    assert await versions(client, repository) == ["1.1.0"]


async def test_the_cloud_cannot_sign_targets(client: Trust, repository: Repository) -> None:
    repository.publish("6.6.6", by=["snapshot", "timestamp"])
    await refused(client, repository, r"2\.targets\.json is not signed by enough")


async def test_targets_of_another_snapshot_are_refused(client: Trust, repository: Repository) -> None:
    first = repository.files["1.targets.json"]
    repository.publish("1.1.0")
    repository.files["2.targets.json"] = first
    await refused(client, repository, r"2\.targets\.json is not the version that must follow")


async def test_a_snapshot_of_another_timestamp_is_refused(client: Trust, repository: Repository) -> None:
    first = repository.files["1.snapshot.json"]
    repository.publish("1.1.0")
    repository.files["2.snapshot.json"] = first
    await refused(client, repository, r"2\.snapshot\.json is not the file that the signed metadata names")


@pytest.mark.parametrize("name", ["1.targets.json", "1.snapshot.json", "timestamp.json", "2.root.json"])
async def test_truncated_and_endless_files_are_refused(client: Trust, repository: Repository, name: str) -> None:
    repository.files.setdefault("2.root.json", repository.files["1.root.json"])
    if name != "2.root.json":
        del repository.files["2.root.json"]
    whole = repository.files[name]
    repository.files[name] = whole[:-20]
    await refused(client, repository, name)
    repository.files[name] = whole + b" " * MAX_METADATA
    await refused(client, repository, f"{name} is larger than")
    repository.files[name] = b"[" * 100_000
    await refused(client, repository, name)


async def test_a_new_root_is_followed_and_a_revoked_key_is_refused(client: Trust, repository: Repository) -> None:
    await versions(client, repository)
    repository.keys["root"], repository.keys["targets"] = ["root 2"], ["targets 2"]
    repository.publish_root()
    repository.publish("1.1.0")
    assert await versions(client, repository) == ["1.1.0"]
    repository.publish("6.6.6", by=["targets"])
    await refused(client, repository, "not signed by enough")


async def test_a_root_that_the_former_root_did_not_sign_is_refused(client: Trust, repository: Repository) -> None:
    repository.keys["root"] = ["thief"]
    repository.publish_root(by=["thief"])
    await refused(client, repository, r"2\.root\.json is not signed by enough")


async def test_no_root_can_be_left_out(client: Trust, repository: Repository) -> None:
    repository.publish_root()
    repository.files["2.root.json"] = repository.publish_root()
    await refused(client, repository, r"2\.root\.json is not the version that must follow")


async def test_new_keys_of_the_cloud_end_the_memory_of_its_versions(client: Trust, repository: Repository) -> None:
    repository.renew(version=10**9)
    await versions(client, repository)
    repository.keys["snapshot"], repository.keys["timestamp"] = ["snapshot 2"], ["timestamp 2"]
    repository.publish_root()
    repository.renew(version=2)
    assert await versions(client, repository) == ["1.0.0"]


async def test_endless_roots_end_and_the_next_refresh_continues(
    client: Trust, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "MAX_ROOTS", 3)
    for _ in range(4):
        repository.publish_root()
    await refused(client, repository, "at least 3 new versions of root.json")
    assert await versions(client, repository) == ["1.0.0"]


@pytest.mark.parametrize("name", ["root.json", "timestamp.json", "snapshot.json", "targets.json"])
@pytest.mark.parametrize("damage", [b"", b"{", b"x" * (MAX_METADATA + 1)], ids=["empty", "cut", "large"])
async def test_a_damaged_file_is_fetched_again(
    client: Trust, repository: Repository, tmp_path: Path, name: str, damage: bytes
) -> None:
    repository.publish_root()
    await versions(client, repository)
    good = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(damage)
    assert await versions(client, repository) == ["1.0.0"]
    assert (tmp_path / name).read_bytes() == good


async def test_a_refresh_that_is_cut_off_at_any_file_keeps_the_protection(
    client: Trust, repository: Repository
) -> None:
    await versions(client, repository)
    old = dict(repository.files)
    repository.publish_root()
    repository.publish("1.1.0")
    for name in ("2.root.json", "timestamp.json", "2.snapshot.json", "2.targets.json"):
        with trio.CancelScope() as scope:

            async def cut(asked: str, limit: int, name: str = name, scope: trio.CancelScope = scope) -> bytes | None:
                if asked == name:
                    scope.cancel()
                    await trio.lowlevel.checkpoint()
                return await repository.fetch(asked, limit)

            await client.refresh(cut, NOW)
        assert scope.cancelled_caught
    new, repository.files = repository.files, {**repository.files, "timestamp.json": old["timestamp.json"]}
    await refused(client, repository, "timestamp.json is not the version that must follow")
    repository.files = new
    assert await versions(client, repository) == ["1.1.0"]


async def test_nothing_is_verified_on_the_event_loop(
    client: Trust, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tuf.api.metadata import Metadata

    threads: set[int] = set()
    original = Metadata.from_bytes.__func__

    def noting(cls: type[object], *args: object) -> object:
        threads.add(threading.get_ident())
        return original(cls, *args)

    monkeypatch.setattr(Metadata, "from_bytes", classmethod(noting))
    await versions(client, repository)
    assert threads
    assert threading.get_ident() not in threads


def test_a_root_that_is_not_signed_is_not_pinned(tmp_path: Path, repository: Repository) -> None:
    with pytest.raises(Untrusted, match=r"the root\.json to pin"):
        pin(tmp_path, repository.publish_root(by=[]))
    assert not list(tmp_path.iterdir())


async def test_pinning_another_root_forgets_the_former_metadata(
    client: Trust, repository: Repository, tmp_path: Path
) -> None:
    repository.publish_root()
    repository.publish("1.1.0")
    await versions(client, repository)
    other = Repository()
    other.keys = {role: [f"other {role}"] for role in other.keys}
    other.roots = other.targets = other.online = 0
    other._root_keys = []
    other.files.clear()
    pin(tmp_path, other.publish_root())
    other.publish("3.0.0")
    assert await versions(client, other) == ["3.0.0"]
