"""Signing of root.json and targets.json with keys that the cloud keeps itself: pure. See `own`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cloud.domain.releases import metadata
from cloud.domain.releases.metadata import OnlineKey, SignedTarget
from schema import ErrorKind, MachineError
from uplink.releases import LIFETIMES, ROOT, TARGETS


@dataclass(frozen=True, slots=True)
class OwnKeys:
    """Seeds (Ed25519, hexadecimal) of the keys for root and targets. The repr hides them."""

    root: str = field(repr=False)
    targets: str = field(repr=False)

    def ids(self) -> frozenset[str]:
        """Return the key ids, as in root.json."""
        return frozenset(metadata.new_key(bytes.fromhex(seed)).keyid for seed in (self.root, self.targets))


def sign_root(
    current: bytes | None, keys: OwnKeys, online: Mapping[str, OnlineKey], now: datetime, before: OwnKeys | None = None
) -> bytes:
    """Return the root.json after `current` with these keys.

    It is signed with the new root key and that of `before`, the keys in force, if they are replaced.
    """
    from securesystemslib.signer import SSlibKey
    from tuf.api.metadata import Metadata, Root

    version = 1 if current is None else int(metadata.parsed(current, ROOT).signed.version) + 1
    root = Root(version, expires=now.replace(microsecond=0) + LIFETIMES[ROOT], consistent_snapshot=True)
    for role, seed in ((ROOT, keys.root), (TARGETS, keys.targets)):
        root.add_key(metadata.signer(seed).public_key, role)
    for role, key in online.items():
        root.add_key(SSlibKey(key.keyid, "ed25519", "ed25519", {"public": key.public}), role)
    document: Any = Metadata(root)
    for signing in {keys.root: None} if before is None else {before.root: None, keys.root: None}:
        document.sign(metadata.signer(signing), append=True)
    return bytes(document.to_bytes())


def sign_targets(current: bytes | None, keys: OwnKeys, entries: Iterable[SignedTarget], now: datetime) -> bytes:
    """Return the targets.json after `current` with these entries."""
    import msgspec
    from tuf.api.metadata import Metadata, TargetFile, Targets

    version = 1 if current is None else int(metadata.parsed(current, TARGETS).signed.version) + 1
    targets = Targets(version, expires=now.replace(microsecond=0) + LIFETIMES[TARGETS])
    for entry in entries:
        path, custom = entry.custom.path, msgspec.to_builtins(entry.custom)
        fields = {"custom": {**custom, "channels": list(custom.get("channels", ()))}}
        targets.targets[path] = TargetFile(entry.size, {"sha256": entry.digest}, path, fields)
    document: Any = Metadata(targets)
    document.sign(metadata.signer(keys.targets))
    return bytes(document.to_bytes())


def handed_over(root: bytes, keys: OwnKeys) -> bytes:
    """Return a root.json of people with the signature of the cloud's root key added, which ends its own use.

    INVALID if it lists a key of the cloud.
    """
    document = metadata.parsed(root, ROOT)
    if keys.ids() & document.signed.keys.keys():
        raise MachineError(
            "root.json lists a key for root or targets that the cloud holds: only people may hold these keys",
            kind=ErrorKind.INVALID,
            remedy="sign one with new keys: `machine cloud releases init --keys FOLDER`",
        )
    document.sign(metadata.signer(keys.root), append=True)
    return bytes(document.to_bytes())
