"""A person's side of a release repository: keys and signatures, made with python-tuf itself."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from securesystemslib.signer import CryptoSigner, SSlibKey
from tuf.api.metadata import Metadata, Root, TargetFile, Targets

from cloud.server.memory import MemoryCloud
from cloud.services.releases.releases import ReleaseService
from cloud.values.author import KEY, Author

SERVER = "machine-server"
PLATFORM = "linux/x86_64"


@dataclass
class Person:
    """Holds the keys of root and targets."""

    owner: str
    root_keys: list[CryptoSigner] = field(default_factory=lambda: [CryptoSigner.generate_ed25519()])
    target_keys: list[CryptoSigner] = field(default_factory=lambda: [CryptoSigner.generate_ed25519()])
    root_version: int = 0
    targets_version: int = 0
    files: dict[str, tuple[bytes, dict[str, Any]]] = field(default_factory=dict)

    def add(self, version: str, content: bytes, channels: Sequence[str] = ("dev",), program: str = SERVER) -> None:
        """Add a release to the next targets.json."""
        custom = {"program": program, "version": version, "platform": PLATFORM, "channels": list(channels)}
        self.files[f"{program}/{version}/{PLATFORM.replace('/', '-')}"] = (content, custom)

    def root(self, online: Mapping[str, SSlibKey], now: datetime, **changes: Any) -> bytes:
        """Sign the next root.json."""
        self.root_version += 1
        expires = now.replace(microsecond=0) + timedelta(days=changes.get("days", 700))
        root = Root(self.root_version, expires=expires, consistent_snapshot=changes.get("consistent", True))
        for signer in self.root_keys:
            root.add_key(signer.public_key, "root")
        for signer in self.target_keys:
            root.add_key(signer.public_key, "targets")
        for role, key in online.items():
            root.add_key(key, role)
        root.roles["root"].threshold = changes.get("threshold", 1)
        root.roles["targets"].threshold = changes.get("threshold", 1)
        return signed(root, changes.get("signers", self.root_keys))

    def targets(self, now: datetime, **changes: Any) -> bytes:
        """Sign the next targets.json."""
        self.targets_version = changes.get("version", self.targets_version + 1)
        expires = now.replace(microsecond=0) + timedelta(days=changes.get("days", 300))
        targets = Targets(self.targets_version, expires=expires)
        for path, (content, custom) in self.files.items():
            size = len(content) + changes.get("larger", 0)
            hashes = {"sha256": hashlib.sha256(content).hexdigest()}
            targets.targets[path] = TargetFile(size, hashes, path, {"custom": custom})
        return signed(targets, changes.get("signers", self.target_keys))


def signed(part: Any, signers: Sequence[CryptoSigner]) -> bytes:
    document: Any = Metadata(part)
    for signer in signers:
        document.sign(signer, append=True)
    return document.to_bytes()


def service(cloud: MemoryCloud, key: str = "") -> ReleaseService:
    return ReleaseService(cloud.cloud, Author(KEY, key or cloud.first.id))


async def online_keys(cloud: MemoryCloud, owner: str) -> dict[str, SSlibKey]:
    created = await service(cloud).create_release_keys(owner)
    return {key.role: SSlibKey(key.keyid, "ed25519", "ed25519", {"public": key.public}) for key in created}


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 10):
        yield content[start : start + 10]


async def send(cloud: MemoryCloud, person: Person) -> None:
    """Upload all files of a person's releases."""
    for content, _ in person.files.values():
        digest = hashlib.sha256(content).hexdigest()
        await service(cloud).upload_release_file(person.owner, digest, pieces(content))


async def publish(cloud: MemoryCloud, person: Person, **changes: Any) -> None:
    """Upload files and a new targets.json."""
    await send(cloud, person)
    targets = person.targets(cloud.cloud.clock(), **changes)
    await service(cloud).update_release_metadata(person.owner, targets_json=targets)


async def opened(cloud: MemoryCloud, *versions: str, channels: Sequence[str] = ("dev",)) -> Person:
    """Create the repository of the first organization with some versions of machine-server."""
    person = Person(cloud.first.organization)
    for version in versions:
        person.add(version, f"program {version}".encode(), channels)
    now = cloud.cloud.clock()
    root = person.root(await online_keys(cloud, person.owner), now)
    await send(cloud, person)
    await service(cloud).update_release_metadata(person.owner, root, person.targets(now))
    return person
