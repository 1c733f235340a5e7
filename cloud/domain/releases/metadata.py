"""Verification of uploaded TUF metadata, and signing with the cloud's own keys: pure.

`tuf` is imported when it is first used: most clouds have no repository, and the import takes some 60 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from schema import ErrorKind, MachineError
from uplink.releases import (
    KEY_TYPE,
    LIFETIMES,
    MAX_FILE,
    MAX_KEYS,
    MAX_METADATA,
    MAX_TARGETS,
    OFFLINE,
    ONLINE,
    ROOT,
    SNAPSHOT,
    TARGETS,
    TIMESTAMP,
    Custom,
    custom_of,
)

_SHA256: Final = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class SignedTarget:
    """A target: a release with the hash (SHA-256, hexadecimal) and size in bytes of its file."""

    custom: Custom
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class VerifiedMetadata:
    """Metadata whose signatures were verified. `targets` are those of targets.json, `keyids` those of root.json."""

    version: int
    expires: datetime
    targets: tuple[SignedTarget, ...] = ()
    keyids: Mapping[str, tuple[str, ...]] | None = None  # by role


@dataclass(frozen=True, slots=True)
class OnlineKey:
    """A key of the cloud. `public` is its public part in hexadecimal digits."""

    keyid: str
    public: str
    seed: str = field(repr=False)


def load() -> None:
    """Import the library, which takes some 60 ms: call this in a thread before a transaction uses this module."""
    import tuf.api.metadata  # noqa: F401


def new_key(seed: bytes) -> OnlineKey:
    """Return the key with a seed of 32 random bytes."""
    public = signer(seed.hex()).public_key
    return OnlineKey(public.keyid, public.keyval["public"], seed.hex())


def check_root(
    content: bytes, current: bytes | None, online: Mapping[str, frozenset[str]], now: datetime
) -> VerifiedMetadata:
    """Verify a new root.json, and return its facts. INVALID, PERMISSION for missing signatures, PRECONDITION if its
    version does not follow that of `current`.

    It must be signed by the threshold of its own keys and of those of `current`, and give the roles snapshot and
    timestamp one key each, of those in `online`.
    """
    document = parsed(content, ROOT)
    root = document.signed
    _check_expiry(root, ROOT, now)
    if not root.consistent_snapshot:
        raise _invalid("root.json does not use consistent snapshots")
    previous = None if current is None else parsed(current, ROOT).signed
    _check_version(root.version, 0 if previous is None else previous.version, ROOT)
    _check_keys(root, online)
    result = root.get_root_verification_result(previous, document.signed_bytes, document.signatures)
    if not result:
        which = "its own keys" if previous is None or result.first else f"the keys of version {previous.version}"
        raise _unsigned(f"root.json is not signed by enough of {which}")
    keyids = {role: tuple(root.roles[role].keyids) for role in (*OFFLINE, *ONLINE)}
    return VerifiedMetadata(root.version, _utc(root.expires), keyids=keyids)


def check_targets(content: bytes, root: bytes, current: int, now: datetime) -> VerifiedMetadata:
    """Verify a new targets.json with the keys of `root`, and return its targets.

    `current` is the version in force, 0 if there is none. INVALID, PERMISSION for missing signatures, PRECONDITION if
    the version does not follow.
    """
    checked = read_targets(content, root)
    if checked is None:
        raise _unsigned("targets.json is not signed by enough of the keys in root.json")
    _check_expiry(parsed(content, TARGETS).signed, TARGETS, now)
    _check_version(checked.version, current, TARGETS)
    return checked


def read_targets(content: bytes, root: bytes) -> VerifiedMetadata | None:
    """Return the targets of a targets.json; None if it is not signed with the keys of `root`. INVALID."""
    document = parsed(content, TARGETS)
    signed = document.signed
    result = parsed(root, ROOT).signed.get_verification_result(TARGETS, document.signed_bytes, document.signatures)
    if not result:
        return None
    if signed.delegations is not None:
        raise _invalid("targets.json delegates to other roles")
    if len(signed.targets) > MAX_TARGETS:
        raise MachineError(
            f"targets.json has {len(signed.targets)} targets; the limit is {MAX_TARGETS}",
            kind=ErrorKind.EXHAUSTED,
            remedy="withdraw old versions: `machine cloud releases withdraw`",
        )
    targets = tuple(_target(path, entry) for path, entry in sorted(signed.targets.items()))
    return VerifiedMetadata(signed.version, _utc(signed.expires), targets)


def sign_snapshot(seed: str, version: int, targets_version: int, now: datetime) -> bytes:
    """Return a snapshot.json that lists a version of targets.json."""
    from tuf.api.metadata import MetaFile, Snapshot

    meta = {f"{TARGETS}.json": MetaFile(targets_version)}
    return _signed(Snapshot(version, expires=now.replace(microsecond=0) + LIFETIMES[SNAPSHOT], meta=meta), seed)


def sign_timestamp(seed: str, version: int, snapshot: bytes, now: datetime) -> bytes:
    """Return a timestamp.json for a snapshot.json."""
    from tuf.api.metadata import MetaFile, Timestamp

    listed = MetaFile.from_data(parsed(snapshot, SNAPSHOT).signed.version, snapshot, ["sha256"])
    expires = now.replace(microsecond=0) + LIFETIMES[TIMESTAMP]
    return _signed(Timestamp(version, expires=expires, snapshot_meta=listed), seed)


def expiry(content: bytes, role: str) -> datetime:
    """Return the expiry of stored metadata."""
    return _utc(parsed(content, role).signed.expires)


# ---- checks


def parsed(content: bytes, role: str) -> Any:
    """Return the metadata of a role, with unchecked signatures; INVALID, EXHAUSTED."""
    from tuf.api.metadata import Metadata
    from tuf.api.serialization import DeserializationError

    if len(content) > MAX_METADATA:
        raise MachineError(
            f"{role}.json has {len(content):,} bytes; the limit is {MAX_METADATA:,}", kind=ErrorKind.EXHAUSTED
        )
    try:
        document: Any = Metadata.from_bytes(content)
    except (DeserializationError, RecursionError) as error:
        raise _invalid(f"{role}.json is not TUF metadata: {error.__cause__ or error}") from None
    if document.signed.type != role:
        raise _invalid(f"the metadata has the type {document.signed.type}; {role} is required")
    if len(document.signatures) > MAX_KEYS:
        raise _invalid(f"{role}.json has {len(document.signatures)} signatures; the limit is {MAX_KEYS}")
    return document


def _check_version(version: int, current: int, role: str) -> None:
    if version != current + 1:
        raise MachineError(
            f"{role}.json has version {version}; the repository needs version {current + 1}",
            kind=ErrorKind.PRECONDITION,
            remedy="another upload may have been faster: repeat the command",
        )


def _check_expiry(signed: Any, role: str, now: datetime) -> None:
    expires, latest = _utc(signed.expires), now + LIFETIMES[role]
    if not now < expires <= latest:
        raise _invalid(
            f"{role}.json expires at {expires:%Y-%m-%d %H:%M} UTC: this must be in the future, and at the latest "
            f"{LIFETIMES[role].days} days from now ({now:%Y-%m-%d %H:%M} UTC): check the clock of this computer"
        )


def _check_keys(root: Any, online: Mapping[str, frozenset[str]]) -> None:
    """Check that people hold the keys of root and targets, and the cloud one each for snapshot and timestamp."""
    if set(root.roles) != {*OFFLINE, *ONLINE}:
        raise _invalid("root.json must have the roles root, targets, snapshot and timestamp")
    if len(root.keys) > 2 * MAX_KEYS:
        raise _invalid(f"root.json has {len(root.keys)} keys; the limit is {2 * MAX_KEYS}")
    for key in root.keys.values():
        public = key.keyval.get("public")
        if (key.keytype, key.scheme) != (KEY_TYPE, KEY_TYPE) or not _is_hash(public):
            raise _invalid(f"the key {key.keyid[:80]} is not an {KEY_TYPE} key")
    publics = {keyid: key.keyval["public"] for keyid, key in root.keys.items()}
    if len(set(publics.values())) != len(publics):
        raise _invalid("root.json contains a key twice, so that it would count as two signatures")
    for role in ONLINE:
        keyids = root.roles[role].keyids
        if len(keyids) != 1 or not set(keyids) <= online[role] or not set(keyids) <= set(publics):
            raise _invalid(f"the role {role} must have one key, which the cloud created for it")
    held = frozenset().union(*online.values())
    for role in OFFLINE:
        keyids = set(root.roles[role].keyids)
        if keyids & held:
            raise _invalid(f"the role {role} has a key of the cloud: only people may hold its keys")
        if not keyids <= set(publics) or len(keyids) < root.roles[role].threshold:
            raise _invalid(f"the role {role} has fewer keys than its threshold of {root.roles[role].threshold}")


def _target(path: str, entry: Any) -> SignedTarget:
    digest = entry.hashes.get("sha256")
    if set(entry.hashes) != {"sha256"} or not _is_hash(digest):
        raise _invalid(f"the target {path[:200]!r} must have exactly one hash, SHA-256")
    if not 0 < entry.length <= MAX_FILE:
        raise _invalid(f"the target {path[:200]!r} has {entry.length:,} bytes; 1 to {MAX_FILE:,} are possible")
    try:
        return SignedTarget(custom_of(path, entry.custom), digest, entry.length)
    except ValueError as error:
        raise _invalid(str(error)) from None


def _is_hash(text: object) -> bool:
    """Return whether `text` is the SHA-256 of something, or another 32 bytes, in lowercase hexadecimal digits."""
    return isinstance(text, str) and len(text) == 64 and set(text) <= _SHA256


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _invalid(text: str) -> MachineError:
    return MachineError(text, kind=ErrorKind.INVALID)


def _unsigned(text: str) -> MachineError:
    return MachineError(
        text,
        kind=ErrorKind.PERMISSION,
        remedy="sign it with more keys: give each folder with keys to the command, --keys FOLDER --keys FOLDER",
    )


# ---- signing


def signer(seed: str) -> Any:
    """Return the signer of a key by its seed in hexadecimal digits."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from securesystemslib.signer import CryptoSigner

    return CryptoSigner(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed)))


def _signed(signed: Any, seed: str) -> bytes:
    from tuf.api.metadata import Metadata

    document: Any = Metadata(signed)
    document.sign(signer(seed))
    return bytes(document.to_bytes())
