"""`machine cloud releases`: files with keys, and a cloud that sends something other than what was published."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from securesystemslib.signer import CryptoSigner

from cloud.domain.releases.metadata import new_key
from command.cloud.releases import keys, signing
from command.cloud.releases.repository import Repository
from rpc.api.client import ApiClient
from rpc.api.cloud_v1 import RELEASES
from schema.errors import ErrorKind, MachineError
from schema.names import API
from uplink.releases import MAX_METADATA, ROOT, SNAPSHOT, TARGETS, TIMESTAMP, Custom

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CUSTOM = Custom("machine-server", "1.0.0", "linux/aarch64", ("dev",))
SHA = "5" * 64


def never() -> str:
    raise AssertionError("the passphrase was asked for")


# ---- keys


def test_a_key_is_written_for_its_owner_only_and_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    created = keys.create(folder, "root", "")
    (path,) = folder.iterdir()
    assert (stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(path.stat().st_mode)) == (0o700, 0o600)
    assert path.name == f"root-{created.public_key.keyid[:12]}.pem"
    assert list(keys.load([folder], never)) == [created.public_key.keyid]


def test_a_passphrase_is_asked_for_once_and_encrypts(tmp_path: Path) -> None:
    for role in ("root", "targets"):
        keys.create(tmp_path, role, "correct horse")
    asked: list[str] = []

    def ask() -> str:
        asked.append("")
        return "correct horse"

    assert len(keys.load([tmp_path], ask)) == 2
    assert len(asked) == 1
    with pytest.raises(MachineError, match=r"passphrase of .*root-.* is wrong") as caught:
        keys.load([tmp_path], lambda: "wrong")
    assert caught.value.kind is ErrorKind.PERMISSION


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    keys.create(tmp_path, "root", "")
    (path,) = tmp_path.iterdir()
    path.chmod(0o640)
    with pytest.raises(MachineError, match=f"chmod 600 {path}"):
        keys.load([tmp_path], never)


def ecdsa() -> bytes:
    private = generate_private_key(SECP256R1())
    no_encryption = serialization.NoEncryption()
    return private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, no_encryption)


@pytest.mark.parametrize("content", [b"", b"-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n", ecdsa()])
def test_a_file_that_is_not_a_key_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "root-1.pem").write_bytes(content)
    (tmp_path / "root-1.pem").chmod(0o600)
    with pytest.raises(MachineError, match=r"root-1\.pem is not a key"):
        keys.load([tmp_path], never)


def test_a_folder_without_keys_is_named(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=f"no key in {tmp_path}"):
        keys.load([tmp_path], never)


# ---- a cloud that sends something else


class FakeCloud(ApiClient):
    """Serves files, and stores what is published without a check, as a cloud that was taken over."""

    def __init__(self) -> None:
        super().__init__(None)
        self.files: dict[str, bytes] = {}
        self.busy = 0  # publications that are refused, because another was faster

    async def call(self, api: API | str, name: str, method: str, /, **arguments: Any) -> Any:
        assert (api, arguments.pop("organization_id")) == (RELEASES, "org")
        return await getattr(self, method)(**arguments)

    async def get_release_metadata(self, name: str) -> bytes:
        if name not in self.files:
            raise MachineError(f"there is no {name}", kind=ErrorKind.NOT_FOUND)
        return self.files[name]

    async def create_release_keys(self) -> Any:
        online = {role: new_key(role.encode().ljust(32)) for role in (SNAPSHOT, TIMESTAMP)}
        return [{"role": role, "keyid": key.keyid, "public": key.public} for role, key in online.items()]

    async def update_release_metadata(self, root_json: bytes | None, targets_json: bytes) -> Any:
        if self.busy:
            self.busy -= 1
            raise MachineError("another upload was faster", kind=ErrorKind.PRECONDITION)
        for role, content in ((ROOT, root_json), (TARGETS, targets_json)):
            if content is not None:
                version = json.loads(content)["signed"]["version"]
                self.files |= {f"{role}.json": content, f"{version}.{role}.json": content}
        return []


@pytest.fixture
def fake() -> FakeCloud:
    return FakeCloud()


async def created(fake: FakeCloud, folder: Path, *, threshold: int = 1) -> Repository:
    first = Repository(fake, "org", [folder], lambda: "")
    signers = {role: [keys.create(folder, role, "") for _ in range(threshold)] for role in (ROOT, TARGETS)}
    await first.create(signers[ROOT], signers[TARGETS], threshold)
    return Repository(fake, "org", [folder], never)


def adding(*versions: str) -> Any:
    def change(entries: signing.Entries) -> signing.Entries:
        for version in versions:
            custom = Custom("machine-server", version, "linux/aarch64", ("dev",))
            entries[custom.path] = signing.entry_of(custom, SHA, 10)
        return entries

    return change


def resigned(content: bytes, role: str, signer: CryptoSigner, **changes: Any) -> bytes:
    """Return metadata with changes, signed with another key."""
    document = signing.parsed(content, role)
    for name, value in changes.items():
        setattr(document.signed, name, value)
    document.signatures.clear()
    document.sign(signer)
    return bytes(document.to_bytes())


async def test_changes_are_published_and_repeated_if_another_was_faster(tmp_path: Path, fake: FakeCloud) -> None:
    mine = await created(fake, tmp_path / "keys")
    fake.busy = 2
    assert await mine.change(adding("1.0.0"))
    assert not await mine.change(adding("1.0.0"))
    assert list(signing.entries_of(fake.files["targets.json"])) == [CUSTOM.path]
    assert (tmp_path / "keys" / "targets.json").read_bytes() == fake.files["targets.json"]
    fake.busy = 3
    with pytest.raises(MachineError, match="was faster"):
        await mine.change(adding("2.0.0"))


async def test_people_take_over_the_repository_of_a_cloud(tmp_path: Path, fake: FakeCloud) -> None:
    first = await created(fake, tmp_path / "cloud")
    await first.change(adding("1.0.0"))
    second = await created(fake, tmp_path / "person")
    root, targets = await second.verified()
    assert (signing.version_of(root, ROOT), signing.version_of(targets, TARGETS)) == (2, 3)
    assert list(signing.entries_of(targets)) == ["machine-server/1.0.0/linux-aarch64"]
    assert await second.change(adding("1.1.0"))


async def test_releases_that_the_cloud_has_added_are_not_signed(tmp_path: Path, fake: FakeCloud) -> None:
    mine = await created(fake, tmp_path / "keys")
    forged = signing.parsed(fake.files["targets.json"], TARGETS)
    forged.signed.targets[CUSTOM.path] = signing.entry_of(CUSTOM, SHA, 10)
    for content in (
        forged.to_bytes(),
        resigned(forged.to_bytes(), TARGETS, CryptoSigner.generate_ed25519()),
    ):
        fake.files["targets.json"] = content
        with pytest.raises(MachineError, match="not signed by enough of your") as caught:
            await mine.change(adding("2.0.0"))
        assert caught.value.kind is ErrorKind.PERMISSION


async def test_an_older_targets_file_is_accepted_only_with_new_keys_of_the_cloud(
    tmp_path: Path, fake: FakeCloud
) -> None:
    mine = await created(fake, tmp_path / "keys")
    await mine.change(adding("1.0.0"))
    older = fake.files["targets.json"]
    await mine.change(adding("2.0.0"))
    fake.files["targets.json"] = older
    with pytest.raises(MachineError, match="version 3 was in force before"):
        await mine.change(adding("3.0.0"))
    await mine.renew(online=True, accept_older=True)
    assert await mine.change(adding("3.0.0"))


async def test_a_root_that_does_not_follow_is_refused(tmp_path: Path, fake: FakeCloud) -> None:
    mine = await created(fake, tmp_path / "keys")
    first, stranger = fake.files["1.root.json"], CryptoSigner.generate_ed25519()
    fake.files["2.root.json"] = resigned(first, ROOT, stranger, version=2)
    with pytest.raises(MachineError, match="not signed by the keys of version 1"):
        await mine.verified()
    signer = next(iter(set(mine.signers) & set(signing.keys_of(first)[ROOT][1])))
    fake.files["2.root.json"] = resigned(first, ROOT, mine.signers[signer], version=3)
    with pytest.raises(MachineError, match="not signed by the keys of version 1"):
        await mine.verified()
    del fake.files["2.root.json"]
    fake.files["1.root.json"] = resigned(first, ROOT, stranger)
    with pytest.raises(MachineError, match="does not have this root"):
        await mine.verified()


async def test_keys_are_replaced(tmp_path: Path, fake: FakeCloud) -> None:
    mine = await created(fake, tmp_path / "keys")
    before = set(mine.signers)
    replaced = {role: [keys.create(tmp_path / "new", role, "")] for role in (ROOT, TARGETS)}
    await mine.renew(replaced=replaced)
    root = fake.files["2.root.json"]
    signing.check_root(fake.files["1.root.json"], root)
    assert {keyid for role in (ROOT, TARGETS) for keyid in signing.keys_of(root)[role][1]}.isdisjoint(before)
    with pytest.raises(MachineError, match="needs 1 signature, and the folders have 0"):
        await mine.change(adding("1.0.0"))
    (tmp_path / "new" / "root.json").write_bytes(root)
    assert await Repository(fake, "org", [tmp_path / "new"], never).change(adding("1.0.0"))


async def test_the_threshold_is_kept(tmp_path: Path, fake: FakeCloud) -> None:
    mine = await created(fake, tmp_path / "keys", threshold=2)
    with pytest.raises(MachineError, match=r"2 keys must sign targets\.json, and there are 1 new ones"):
        await mine.renew(replaced={TARGETS: [keys.create(tmp_path / "new", TARGETS, "")]})
    some = dict(list(mine.signers.items())[:1])
    mine.use(some)
    with pytest.raises(MachineError, match="needs 2 signatures"):
        await mine.renew()


async def test_without_the_root_of_the_organization_nothing_is_trusted(tmp_path: Path, fake: FakeCloud) -> None:
    keys.create(tmp_path, ROOT, "")
    with pytest.raises(MachineError, match=r"there is no root\.json in"):
        await Repository(fake, "org", [tmp_path], never).verified()


async def test_metadata_that_is_too_large_is_refused(tmp_path: Path, fake: FakeCloud) -> None:
    mine = await created(fake, tmp_path / "keys")
    fake.files["2.root.json"] = bytes(MAX_METADATA + 1)
    with pytest.raises(MachineError, match=f"2.root.json with {MAX_METADATA + 1} bytes") as caught:
        await mine.verified()
    assert caught.value.kind is ErrorKind.UNAVAILABLE
