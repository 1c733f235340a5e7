"""The cloud accepts only what people signed, and signs snapshot and timestamp itself."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from securesystemslib.signer import CryptoSigner, SSlibKey
from tuf.api.exceptions import BadVersionNumberError
from tuf.api.metadata import Metadata
from tuf.ngclient import FetcherInterface, Updater

from cloud.blobs import sizes
from cloud.domain.organizations.first import create_owner
from cloud.domain.releases import files, repository
from cloud.server.memory import MemoryCloud
from cloud.services.releases import renewal
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.release_help import Person, online_keys, opened, pieces, publish, send, service
from uplink.releases import TARGETS


async def refused(kind: ErrorKind, call: Any) -> str:
    with pytest.raises(MachineError) as caught:
        await call
    assert caught.value.kind is kind, caught.value
    return str(caught.value)


async def name_of(cloud: MemoryCloud, owner: str, name: str) -> bytes:
    return await service(cloud).get_release_metadata(owner, name)


async def versions(cloud: MemoryCloud) -> dict[str, int]:
    listed = await service(cloud).list_releases(cloud.first.organization)
    return {entry.role: entry.version for entry in listed.metadata}


class Fetcher(FetcherInterface):
    """Gives python-tuf's own client what the cloud serves."""

    def __init__(self, content: dict[str, bytes]) -> None:
        self.content = content

    def _fetch(self, url: str) -> Any:
        from tuf.api.exceptions import DownloadHTTPError

        name = url.removeprefix("http://cloud.test/")
        if name not in self.content:
            raise DownloadHTTPError("missing", 404)
        yield self.content[name]


async def served(cloud: MemoryCloud, owner: str) -> dict[str, bytes]:
    content = {}
    listed = await service(cloud).list_releases(owner)
    for entry in listed.metadata:
        for number in [entry.version] if entry.role != "root" else range(1, entry.version + 1):
            name = f"{number}.{entry.role}.json" if entry.role != "timestamp" else "timestamp.json"
            content[name] = await name_of(cloud, owner, name)
    return content


def client(folder: Path, content: dict[str, bytes], clock: Clock) -> Updater:
    folder.mkdir(exist_ok=True)
    root = None if (folder / "root.json").exists() else content["1.root.json"]
    updater = Updater(
        str(folder),
        "http://cloud.test/",
        fetcher=Fetcher(content),
        target_base_url="http://cloud.test/",
        bootstrap=root,
    )
    updater._trusted_set.reference_time = clock()
    return updater


async def test_a_client_of_tuf_accepts_the_repository(cloud: MemoryCloud, clock: Clock, tmp_path: Path) -> None:
    person = await opened(cloud, "1.0.0")
    updater = client(tmp_path / "c", await served(cloud, person.owner), clock)
    updater.refresh()
    target = updater.get_targetinfo("machine-server/1.0.0/linux-x86_64")
    assert target is not None
    assert target.length == len(b"program 1.0.0")
    assert target.custom["channels"] == ["dev"]
    clock.now += timedelta(hours=13)
    await renewal.renew(cloud.cloud)
    person.add("1.1.0", b"program 1.1.0")
    await publish(cloud, person)
    updater = client(tmp_path / "c", await served(cloud, person.owner), clock)
    updater.refresh()
    assert updater.get_targetinfo("machine-server/1.1.0/linux-x86_64") is not None


async def test_invalid_metadata_is_refused(cloud: MemoryCloud, clock: Clock) -> None:
    person = await opened(cloud, "1.0.0")
    before, now = await versions(cloud), clock()
    other = Person(person.owner, targets_version=1)
    other.files = person.files
    update = service(cloud).update_release_metadata

    async def refuse(kind: ErrorKind, **changes: Any) -> str:
        version = person.targets_version
        content = changes.pop("by", person).targets(now, **changes)
        person.targets_version = version
        return await refused(kind, update(person.owner, targets_json=content))

    assert "not signed" in await refuse(ErrorKind.PERMISSION, by=other)
    assert "not signed" in await refuse(ErrorKind.PERMISSION, signers=person.root_keys)
    assert "not signed" in await refuse(ErrorKind.PERMISSION, signers=[])
    assert "needs version 2" in await refuse(ErrorKind.PRECONDITION, version=1)
    assert "needs version 2" in await refuse(ErrorKind.PRECONDITION, version=3)
    assert "in the future" in await refuse(ErrorKind.INVALID, days=0)
    assert "365 days" in await refuse(ErrorKind.INVALID, days=366)
    assert "its file has 13" in await refuse(ErrorKind.INVALID, larger=1)
    person.add("2.0.0", b"never uploaded")
    assert "was not uploaded" in await refuse(ErrorKind.PRECONDITION)
    path, (content, custom) = person.files.popitem()
    person.files[path] = (b"program 1.0.0", {**custom, "version": "3.0.0"})
    assert "its name must be the same" in await refuse(ErrorKind.INVALID)
    person.files[path] = (content, {**custom, "channels": ["beta"]})
    assert "no channel" in await refuse(ErrorKind.INVALID)
    for text in (b"", b"{}", b"[" * 100_000, b'{"signed": 1}', b"\xff", b"x" * 600_000):
        with pytest.raises(MachineError):
            await update(person.owner, targets_json=text)
    snapshot = await name_of(cloud, person.owner, "snapshot.json")
    assert "type snapshot" in await refused(ErrorKind.INVALID, update(person.owner, targets_json=snapshot))
    await refused(ErrorKind.INVALID, update(person.owner))
    assert await versions(cloud) == before


async def test_a_changed_byte_is_refused(cloud: MemoryCloud, clock: Clock) -> None:
    person = await opened(cloud, "1.0.0")
    document = json.loads(person.targets(clock()))
    document["signed"]["targets"].clear()
    call = service(cloud).update_release_metadata(person.owner, targets_json=json.dumps(document).encode())
    assert "not signed" in await refused(ErrorKind.PERMISSION, call)


async def test_invalid_roots_are_refused(cloud: MemoryCloud, clock: Clock) -> None:
    person = await opened(cloud, "1.0.0")
    now = clock()
    online = await online_keys(cloud, person.owner)
    update = service(cloud).update_release_metadata

    async def refuse(kind: ErrorKind, by: Person = person, keys: Any = online, **changes: Any) -> str:
        by.root_version = changes.pop("after", 1)
        return await refused(kind, update(person.owner, root_json=by.root(keys, now, **changes)))

    stranger = Person(person.owner)
    assert "keys of version 1" in await refuse(ErrorKind.PERMISSION, stranger)
    both = [*stranger.root_keys, *person.root_keys]
    assert "needs version 2" in await refuse(ErrorKind.PRECONDITION, stranger, after=2, signers=both)
    assert "needs version 2" in await refuse(ErrorKind.PRECONDITION, after=0)
    assert "consistent" in await refuse(ErrorKind.INVALID, consistent=False)
    assert "730 days" in await refuse(ErrorKind.INVALID, days=800)
    assert "which the cloud created" in await refuse(
        ErrorKind.INVALID, keys={**online, "snapshot": online["timestamp"]}
    )
    foreign = CryptoSigner.generate_ed25519().public_key
    assert "which the cloud created" in await refuse(ErrorKind.INVALID, keys={**online, "timestamp": foreign})
    assert "must have one key" in await refuse(ErrorKind.INVALID, keys={"snapshot": online["snapshot"]})
    assert "fewer keys" in await refuse(ErrorKind.INVALID, threshold=2)
    twin = person.root_keys[0].public_key
    copy = SSlibKey("0" * 64, twin.keytype, twin.scheme, twin.keyval)
    assert "twice" in await refuse(ErrorKind.INVALID, keys={**online, "root": copy})
    assert "only people" in await refuse(ErrorKind.INVALID, keys={**online, "targets": online["snapshot"]})
    rsa = CryptoSigner.generate_ecdsa().public_key
    assert "not an ed25519 key" in await refuse(ErrorKind.INVALID, keys={**online, "root": rsa})
    assert (await versions(cloud))["root"] == 1


async def test_rotation_of_all_keys(cloud: MemoryCloud, clock: Clock, tmp_path: Path) -> None:
    person = await opened(cloud, "1.0.0")
    client(tmp_path / "c", await served(cloud, person.owner), clock).refresh()
    old, now = list(person.root_keys), clock()
    person.root_keys, person.target_keys = [CryptoSigner.generate_ed25519()], [CryptoSigner.generate_ed25519()]
    online = await online_keys(cloud, person.owner)
    update = service(cloud).update_release_metadata
    root = person.root(online, now, signers=[*old, *person.root_keys])
    assert "together with it" in await refused(ErrorKind.PRECONDITION, update(person.owner, root))
    await update(person.owner, root, person.targets(now))
    updater = client(tmp_path / "c", await served(cloud, person.owner), clock)
    updater.refresh()
    assert updater.get_targetinfo("machine-server/1.0.0/linux-x86_64") is not None
    keys = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT keyid FROM release_keys"))
    assert sorted(row["keyid"] for row in keys) == sorted(key.keyid for key in online.values())


async def test_thresholds(cloud: MemoryCloud, clock: Clock) -> None:
    person = Person(cloud.first.organization)
    person.root_keys.append(CryptoSigner.generate_ed25519())
    person.target_keys.append(CryptoSigner.generate_ed25519())
    online, now = await online_keys(cloud, person.owner), clock()
    update = service(cloud).update_release_metadata
    alone = person.root(online, now, threshold=2, signers=person.root_keys[:1])
    await refused(ErrorKind.PERMISSION, update(person.owner, alone, person.targets(now)))
    person.root_version = person.targets_version = 0
    root = person.root(online, now, threshold=2)
    await refused(ErrorKind.PERMISSION, update(person.owner, root, person.targets(now, signers=person.target_keys[:1])))
    await update(person.owner, root, person.targets(now, version=1))
    assert (await versions(cloud))["targets"] == 1


async def test_renewal_is_in_time(cloud: MemoryCloud, clock: Clock) -> None:
    person = await opened(cloud, "1.0.0")
    first = await versions(cloud)
    assert await renewal.renew(cloud.cloud) == renewal.LONGEST
    assert await versions(cloud) == first
    for _ in range(30):  # 15 days
        clock.now += timedelta(hours=12)
        await renewal.renew(cloud.cloud)
        for name in ("timestamp.json", "snapshot.json"):
            document: Any = Metadata.from_bytes(await name_of(cloud, person.owner, name))
            assert document.signed.expires > clock() + timedelta(hours=11)
    later = await versions(cloud)
    assert later["timestamp"] > first["timestamp"] + 29
    assert later["snapshot"] > first["snapshot"]
    assert later[TARGETS] == 1
    rows = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT role FROM release_metadata"))
    assert len([row for row in rows if row["role"] == "timestamp"]) == 1


async def test_a_restored_database_does_not_look_like_a_replay(
    cloud: MemoryCloud, clock: Clock, tmp_path: Path
) -> None:
    """Timestamp and snapshot are numbered by time; only newer targets that the backup lacks need a rotation."""
    person = await opened(cloud, "1.0.0")
    rows = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT * FROM release_metadata"))
    clock.now += timedelta(days=1)
    await renewal.renew(cloud.cloud)
    client(tmp_path / "c", await served(cloud, person.owner), clock).refresh()
    backup = [(row["role"], row["version"], row["content"], row["expires"], row["stored"]) for row in rows]

    def restore(sql: Any) -> None:
        sql.run("DELETE FROM release_metadata")
        columns = "organization_id, role, version, content, expires, stored"
        sql.many(
            f"INSERT INTO release_metadata ({columns}) VALUES (?, ?, ?, ?, ?, ?)",
            [(person.owner, *row) for row in backup],
        )
        sql.run("UPDATE release_signing SET due = 0")

    await cloud.cloud.store.write(restore)
    clock.now += timedelta(seconds=5)
    await renewal.renew(cloud.cloud)
    client(tmp_path / "c", await served(cloud, person.owner), clock).refresh()


async def test_newer_targets_than_the_backup_need_new_keys_of_the_cloud(
    cloud: MemoryCloud, clock: Clock, tmp_path: Path
) -> None:
    person = await opened(cloud, "1.0.0")
    person.add("1.1.0", b"program 1.1.0")
    await publish(cloud, person)
    client(tmp_path / "c", await served(cloud, person.owner), clock).refresh()
    await cloud.cloud.store.write(
        lambda sql: sql.run("DELETE FROM release_metadata WHERE role = 'targets' AND version = 2")
    )
    clock.now += timedelta(hours=13)
    await cloud.cloud.store.write(lambda sql: sql.run("DELETE FROM release_metadata WHERE role = 'snapshot'"))
    await renewal.renew(cloud.cloud)
    with pytest.raises(BadVersionNumberError):
        client(tmp_path / "c", await served(cloud, person.owner), clock).refresh()
    root = person.root(await online_keys(cloud, person.owner), clock())
    await service(cloud).update_release_metadata(person.owner, root)
    updater = client(tmp_path / "c", await served(cloud, person.owner), clock)
    updater.refresh()
    assert updater.get_targetinfo("machine-server/1.0.0/linux-x86_64") is not None


async def test_files_are_checked_and_repeated_uploads_are_not_stored_again(cloud: MemoryCloud) -> None:
    owner, digest = cloud.first.organization, hashlib.sha256(b"content").hexdigest()
    upload = service(cloud).upload_release_file
    assert "not " + digest in await refused(ErrorKind.INVALID, upload(owner, digest, pieces(b"contenT")))
    await refused(ErrorKind.INVALID, upload(owner, hashlib.sha256(b"").hexdigest(), pieces(b"")))
    assert not await sizes(cloud.cloud.blobs)
    assert not await service(cloud).has_release_file(owner, digest)

    async def broken() -> Any:
        yield b"cont"
        raise MachineError("the connection was lost", kind=ErrorKind.UNAVAILABLE)

    await refused(ErrorKind.UNAVAILABLE, upload(owner, digest, broken()))
    assert not await sizes(cloud.cloud.blobs)
    assert await upload(owner, digest, pieces(b"content")) == 7
    assert await service(cloud).has_release_file(owner, digest)
    assert await upload(owner, digest, broken()) == 7  # nothing is read
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(upload, owner, hashlib.sha256(b"twin").hexdigest(), pieces(b"twin"))
    assert sorted((await sizes(cloud.cloud.blobs)).values()) == [4, 7]


async def test_too_large_files_are_refused_and_not_stored(cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.services.releases.releases.MAX_FILE", 5)
    owner, digest = cloud.first.organization, hashlib.sha256(b"content").hexdigest()
    await refused(ErrorKind.EXHAUSTED, service(cloud).upload_release_file(owner, digest, pieces(b"content")))
    assert not await sizes(cloud.cloud.blobs)


async def test_files_without_a_target_are_removed_after_a_day(cloud: MemoryCloud, clock: Clock) -> None:
    person = await opened(cloud, "1.0.0", "1.1.0")
    extra = hashlib.sha256(b"extra").hexdigest()
    await service(cloud).upload_release_file(person.owner, extra, pieces(b"extra"))
    path = next(path for path in person.files if "1.0.0" in path)
    del person.files[path]
    await publish(cloud, person)
    store = cloud.cloud.store
    assert await store.write(lambda sql: files.expire(sql, clock())) == 0
    clock.now += timedelta(hours=25)
    assert await store.write(lambda sql: files.expire(sql, clock())) == 2
    assert not await service(cloud).has_release_file(person.owner, extra)
    assert await service(cloud).has_release_file(person.owner, hashlib.sha256(b"program 1.1.0").hexdigest())


async def test_the_second_of_two_concurrent_uploads_is_refused(cloud: MemoryCloud, clock: Clock) -> None:
    person = await opened(cloud, "1.0.0")
    results = []

    async def attempt(content: bytes) -> None:
        try:
            await service(cloud).update_release_metadata(person.owner, targets_json=content)
            results.append("stored")
        except MachineError as error:
            results.append(error.kind.value)

    now = clock()
    contents = [person.targets(now, version=2), person.targets(now, version=2, days=200)]
    async with trio.open_nursery() as nursery:
        for content in contents:
            nursery.start_soon(attempt, content)
    assert sorted(results) == sorted(["stored", ErrorKind.PRECONDITION.value])
    assert (await versions(cloud))["targets"] == 2


async def test_another_organization_neither_reads_nor_writes(cloud: MemoryCloud, clock: Clock) -> None:
    person = await opened(cloud, "1.0.0")
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", clock()))
    theirs = service(cloud, other.id)
    digest = hashlib.sha256(b"program 1.0.0").hexdigest()
    for call in (
        theirs.get_release_metadata(person.owner, "timestamp.json"),
        theirs.list_releases(person.owner),
        theirs.has_release_file(person.owner, digest),
        theirs.create_release_keys(person.owner),
        theirs.update_release_metadata(person.owner, targets_json=person.targets(clock())),
        theirs.upload_release_file(person.owner, digest, pieces(b"program 1.0.0")),
    ):
        await refused(ErrorKind.NOT_FOUND, call)
    mine = service(cloud, other.id)
    assert not await mine.has_release_file(other.organization, digest)
    assert (await mine.list_releases(other.organization)).targets == []
    await refused(ErrorKind.NOT_FOUND, mine.get_release_metadata(other.organization, "timestamp.json"))
    # a file of the first organization does not belong to the second, although its hash is the same
    keys = await mine.create_release_keys(other.organization)
    thief = Person(other.organization)
    thief.files = person.files
    online = {key.role: SSlibKey(key.keyid, "ed25519", "ed25519", {"public": key.public}) for key in keys}
    root, targets = thief.root(online, clock()), thief.targets(clock())
    text = await refused(ErrorKind.PRECONDITION, mine.update_release_metadata(other.organization, root, targets))
    assert "was not uploaded" in text


async def test_keys_that_no_root_lists_are_deleted(cloud: MemoryCloud) -> None:
    person = await opened(cloud)
    for _ in range(2 * repository.MAX_KEYS):
        await online_keys(cloud, person.owner)
    rows = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT keyid FROM release_keys WHERE role = 'snapshot'"))
    assert len(rows) == repository.MAX_KEYS + 1
    await send(cloud, person)
    await publish(cloud, person)  # signs with the keys in use
