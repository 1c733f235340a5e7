"""A repository of signed releases, as the cloud and its people make it, served from memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.signer import CryptoSigner
from tuf.api.metadata import Metadata, Root, TargetFile, Targets

from agent.update.record import Release
from cloud.domain.releases.metadata import new_key, sign_snapshot, sign_timestamp
from uplink.releases import ROOT, SNAPSHOT, TARGETS, TIMESTAMP, Custom

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
ROLES = (ROOT, TARGETS, SNAPSHOT, TIMESTAMP)


def seed(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def signer(text: str) -> CryptoSigner:
    return CryptoSigner(Ed25519PrivateKey.from_private_bytes(seed(text)))


class Repository:
    """Keys are named by texts, such as `root 1`; `keys` gives those of each role. `files` is what the cloud serves."""

    def __init__(self) -> None:
        self.keys = {role: [role] for role in ROLES}
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.roots = self.targets = self.online = 0
        self.publish_root()
        self.publish("1.0.0")

    async def fetch(self, name: str, limit: int) -> bytes | None:
        """Return a file, as a cloud that does not care about the limit."""
        self.asked.append(name)
        return self.files.get(name)

    def publish_root(self, *, by: Iterable[str] | None = None, now: datetime = NOW) -> bytes:
        """Publish the next root.json with `keys`, signed by the keys `by`, by default the current and former ones."""
        former = getattr(self, "_root_keys", [])
        self.roots += 1
        root = Root(self.roots, expires=now + timedelta(days=730), consistent_snapshot=True)
        for role in ROLES:
            for key in self.keys[role]:
                root.add_key(signer(key).public_key, role)
        self._root_keys = list(self.keys[ROOT])
        content = signed(root, {*self._root_keys, *former} if by is None else by)
        self.files[f"{self.roots}.root.json"] = content
        return content

    def publish(
        self,
        *versions: str,
        by: Iterable[str] | None = None,
        now: datetime = NOW,
        targets_version: int | None = None,
        files: Iterable[Release] = (),
        program: str = "machine-server",
    ) -> None:
        """Publish targets.json with releases of these versions, or `files`, and a new snapshot and timestamp."""
        self.targets = self.targets + 1 if targets_version is None else targets_version
        entries = {}
        unnamed = [Release(version, seed(version).hex(), 1000, "", "linux/aarch64") for version in versions]
        for release in (*unnamed, *files):
            custom = Custom(program, release.version, release.platform, ("stable",))
            fields = {"program": program, "version": custom.version, "platform": custom.platform}
            file = TargetFile(release.size, {"sha256": release.sha256}, custom.path, {"custom": fields})
            entries[custom.path] = file
        targets = Targets(self.targets, expires=now + timedelta(days=365), targets=entries)
        self.files[f"{self.targets}.targets.json"] = signed(targets, self.keys[TARGETS] if by is None else by)
        self.renew(now=now)

    def renew(self, *, now: datetime = NOW, version: int | None = None) -> None:
        """Sign snapshot and timestamp with the keys of the cloud."""
        self.online = self.online + 1 if version is None else version
        snapshot = sign_snapshot(self._seed(SNAPSHOT), self.online, self.targets, now)
        self.files[f"{self.online}.snapshot.json"] = snapshot
        self.files["timestamp.json"] = sign_timestamp(self._seed(TIMESTAMP), self.online, snapshot, now)

    def _seed(self, role: str) -> str:
        return new_key(seed(self.keys[role][0])).seed


def signed(content: Any, keys: Iterable[str]) -> bytes:
    document: Any = Metadata(content)
    for key in sorted(keys):
        document.sign(signer(key), append=True)
    return bytes(document.to_bytes())
