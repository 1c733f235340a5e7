"""A cloud that keeps the keys of releases itself: what clients of TUF accept, and how people take over."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.release_seeds import replace_seeds
from cloud.domain.releases import metadata, own, own_signing, repository
from cloud.domain.releases.metadata import SignedTarget
from cloud.server.memory import MemoryCloud
from cloud.services.releases import renewal
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.release_help import Person, online_keys, opened, send, service
from tests.unit.cloud.services.releases.test_repository import client, served, versions
from uplink.releases import Custom

NAME = "machine-server/1.0.0/linux-x86_64"


def adding(*entries: SignedTarget) -> own.Change:
    def change(before: Sequence[SignedTarget]) -> Sequence[SignedTarget]:
        return [*before, *entries]

    return change


async def published(cloud: MemoryCloud, content: bytes = b"program 1.0.0") -> str:
    """Publish a version that the cloud signs."""
    person = Person(cloud.first.organization)
    person.add("1.0.0", content)
    await send(cloud, person)
    digest = hashlib.sha256(content).hexdigest()
    entry = SignedTarget(Custom("machine-server", "1.0.0", "linux/x86_64", ("dev",)), digest, len(content))
    now = cloud.cloud.clock()
    await cloud.cloud.store.write(lambda sql: own.publish(sql, person.owner, now, adding(entry)))
    return person.owner


async def seeds(cloud: MemoryCloud, owner: str) -> own_signing.OwnKeys | None:
    return await cloud.cloud.store.read(lambda sql: own.keys_of(sql, owner))


async def test_a_new_cloud_has_keys_and_no_repository(cloud: MemoryCloud) -> None:
    owner = cloud.first.organization
    keys = await seeds(cloud, owner)
    assert keys is not None
    assert keys.root != keys.targets
    assert keys.root not in repr(keys)
    listed = await service(cloud).list_releases(owner)
    assert (listed.metadata, listed.keys_held_by) == ([], "cloud")
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    theirs = await seeds(cloud, other.organization)
    assert theirs is not None
    assert len({keys.root, keys.targets, theirs.root, theirs.targets}) == 4


async def test_clients_follow_rotation_and_renewal(cloud: MemoryCloud, clock: Clock, tmp_path: Path) -> None:
    owner = await published(cloud)
    updater = client(tmp_path / "c", await served(cloud, owner), clock)
    updater.refresh()
    assert updater.get_targetinfo(NAME) is not None
    before = await seeds(cloud, owner)
    await service(cloud).rotate_release_keys(owner)
    after = await seeds(cloud, owner)
    assert before is not None
    assert after is not None
    assert {before.root, before.targets}.isdisjoint({after.root, after.targets})
    clock.now += timedelta(days=183)  # targets
    await renewal.renew(cloud.cloud)
    assert (await versions(cloud))["root"] == 2
    assert (await versions(cloud))["targets"] == 3
    clock.now += timedelta(days=183)  # root
    await renewal.renew(cloud.cloud)
    assert (await versions(cloud))["root"] == 3
    updater = client(tmp_path / "c", await served(cloud, owner), clock)
    updater.refresh()
    assert updater.get_targetinfo(NAME) is not None


async def test_a_repository_of_people_is_never_changed(cloud: MemoryCloud, clock: Clock) -> None:
    person = await opened(cloud, "1.0.0")
    assert await seeds(cloud, person.owner) is None
    before = await versions(cloud)
    calls = service(cloud)
    for call in (
        calls.rotate_release_keys(person.owner),
        calls.set_release_channels(person.owner, "machine-server", "1.0.0", []),
    ):
        with pytest.raises(MachineError, match="people of this organization hold the keys") as caught:
            await call
        assert caught.value.kind is ErrorKind.PRECONDITION

    def forced(sql: Sql) -> None:  # seeds that were stored behind its back sign nothing that is accepted
        replace_seeds(sql, person.owner, clock())
        own.publish(sql, person.owner, clock(), lambda entries: [])

    with pytest.raises(MachineError) as caught:
        await cloud.cloud.store.write(forced)
    assert caught.value.kind is ErrorKind.PERMISSION
    clock.now += timedelta(days=360)
    await renewal.renew(cloud.cloud)
    after = await versions(cloud)
    assert (before["root"], before["targets"]) == (after["root"], after["targets"])


async def test_people_take_over(cloud: MemoryCloud, clock: Clock, tmp_path: Path) -> None:
    owner = await published(cloud)
    updater = client(tmp_path / "c", await served(cloud, owner), clock)
    updater.refresh()
    held = await seeds(cloud, owner)
    assert held is not None
    person = Person(owner, root_version=1, targets_version=1)
    person.add("1.0.0", b"program 1.0.0")
    online = await online_keys(cloud, owner)
    with pytest.raises(MachineError, match="not signed"):  # only with a root of theirs
        await service(cloud).update_release_metadata(owner, targets_json=person.targets(clock(), version=2))
    mixed = Person(owner, target_keys=[metadata.signer(held.targets)], root_version=1, targets_version=1)
    with pytest.raises(MachineError, match="a key for root or targets that the cloud holds"):
        await service(cloud).update_release_metadata(owner, mixed.root(online, clock()), mixed.targets(clock()))
    root = person.root(online, clock())
    await service(cloud).update_release_metadata(owner, root, person.targets(clock(), version=2))
    assert await seeds(cloud, owner) is None
    assert (await service(cloud).list_releases(owner)).keys_held_by == "people"
    updater = client(tmp_path / "c", await served(cloud, owner), clock)
    updater.refresh()
    assert updater.get_targetinfo(NAME) is not None


async def test_a_root_of_people_without_their_targets_changes_nothing(cloud: MemoryCloud, clock: Clock) -> None:
    owner = await published(cloud)
    person = Person(owner, root_version=1)
    root = person.root(await online_keys(cloud, owner), clock())
    with pytest.raises(MachineError, match="not signed with the keys of the new"):
        await service(cloud).update_release_metadata(owner, root)
    assert await seeds(cloud, owner) is not None
    await service(cloud).rotate_release_keys(owner)


async def test_channels_and_withdrawal(cloud: MemoryCloud) -> None:
    owner = await published(cloud)
    calls = service(cloud)
    targets = await calls.set_release_channels(owner, "machine-server", "1.0.0", ["dev", "stable"])
    assert [target.channels for target in targets] == [["dev", "stable"]]
    with pytest.raises(MachineError, match="no channel 'beta'"):
        await calls.set_release_channels(owner, "machine-server", "1.0.0", ["beta"])
    with pytest.raises(MachineError, match=r"no release 'machine-server 2\.0\.0'"):
        await calls.set_release_channels(owner, "machine-server", "2.0.0", [])
    assert await calls.set_release_channels(owner, "machine-server", "1.0.0", []) == []
    assert (await calls.list_releases(owner)).targets == []


async def test_keys_do_not_leave_the_database(cloud: MemoryCloud, caplog: pytest.LogCaptureFixture) -> None:
    owner = await published(cloud)
    held = await seeds(cloud, owner)
    assert held is not None
    await service(cloud).rotate_release_keys(owner)
    now = await seeds(cloud, owner)
    assert now is not None
    online = await cloud.cloud.store.read(lambda sql: repository.newest(sql, owner, "root"))
    rows = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT detail FROM audit"))
    served_texts = [content.decode() for content in (await served(cloud, owner)).values()]
    texts = [*served_texts, *(row["detail"] for row in rows), repr(online), caplog.text, repr(held)]
    secret = [held.root, held.targets, now.root, now.targets]
    assert not [seed for seed in secret if any(seed in text for text in texts)]
