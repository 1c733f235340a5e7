"""Signing of root.json and targets.json with keys of people, and verification of the cloud's metadata. Pure.

A new version is derived from the metadata in the cloud, which is verified before with the copies in the folder of the
keys: otherwise a cloud that was taken over could add a release to the next version, and a person would sign it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from schema import ErrorKind, MachineError
from uplink.releases import KEY_TYPE, LIFETIMES, ROOT, TARGETS, Custom

Entries = dict[str, Any]
"""Targets (tuf.api.metadata.TargetFile) by name."""

_TAKEN_OVER: Final = "publish nothing until it is clear why: the cloud may have been taken over"


def parsed(content: bytes, role: str) -> Any:
    """Return the metadata of a role; INVALID."""
    from tuf.api.metadata import Metadata
    from tuf.api.serialization import DeserializationError

    try:
        document: Any = Metadata.from_bytes(content)
    except (DeserializationError, RecursionError) as error:
        raise MachineError(f"{role}.json is not TUF metadata: {error}", kind=ErrorKind.INVALID) from None
    if document.signed.type != role:
        raise MachineError(f"the metadata has the type {document.signed.type}, not {role}", kind=ErrorKind.INVALID)
    return document


def version_of(content: bytes, role: str) -> int:
    """Return the version of metadata; INVALID."""
    return int(parsed(content, role).signed.version)


def check_root(current: bytes, new: bytes) -> None:
    """Raise MachineError (PERMISSION) unless `new` follows `current`, signed by enough keys of both."""
    before, document = parsed(current, ROOT).signed, parsed(new, ROOT)
    follows = document.signed.version == before.version + 1
    if not follows or not document.signed.get_root_verification_result(
        before, document.signed_bytes, document.signatures
    ):
        raise MachineError(
            f"the cloud has a root.json, version {document.signed.version}, that is not signed by the keys of version "
            f"{before.version}",
            kind=ErrorKind.PERMISSION,
            remedy=_TAKEN_OVER,
        )


def check_targets(root: bytes, targets: bytes, seen: int) -> None:
    """Raise MachineError (PERMISSION) unless `targets` is signed by enough keys of `root`, and not older than `seen`.

    `seen` is a version that was in force before. Metadata that has expired is accepted, because it is signed again.
    """
    document = parsed(targets, TARGETS)
    result = parsed(root, ROOT).signed.get_verification_result(TARGETS, document.signed_bytes, document.signatures)
    if not result:
        raise MachineError(
            f"the cloud has a targets.json, version {document.signed.version}, that is not signed by enough of your "
            "organization's keys",
            kind=ErrorKind.PERMISSION,
            remedy=_TAKEN_OVER,
        )
    if document.signed.version < seen:
        raise MachineError(
            f"the cloud has version {document.signed.version} of targets.json, but version {seen} was in force before",
            kind=ErrorKind.PERMISSION,
            remedy="if it was restored from a backup, run `machine cloud releases rotate --online-keys`, then publish "
            "again what is missing; otherwise it may have been taken over",
        )


def first_root(
    roots: Sequence[Any],
    targets: Sequence[Any],
    online: Mapping[str, Any],
    threshold: int,
    now: datetime,
    version: int = 1,
) -> bytes:
    """Return the first root.json of people, signed by the signers `roots`; later versions need `threshold` of them.

    `online` are the public keys of the cloud by role. `version` is not 1 if the cloud kept the keys before.
    """
    from tuf.api.metadata import Root

    root = Root(version, expires=_expiry(ROOT, now), consistent_snapshot=True)
    for role, signers in ((ROOT, roots), (TARGETS, targets)):
        for signer in signers:
            root.add_key(signer.public_key, role)
        root.roles[role].threshold = threshold
    for role, key in online.items():
        root.add_key(key, role)
    return _signed(root, roots)


def next_root(
    current: bytes,
    signers: Mapping[str, Any],
    now: datetime,
    *,
    replaced: Mapping[str, Sequence[Any]] | None = None,
    online: Mapping[str, Any] | None = None,
) -> bytes:
    """Return the next version of root.json, signed by the keys of this and the next version among `signers`.

    `replaced` are the new signers of a role of people, `online` the new public keys of the cloud by role. PERMISSION
    if there are too few keys, PRECONDITION if there are fewer new keys than must sign.
    """
    root = parsed(current, ROOT).signed
    before = frozenset(root.roles[ROOT].keyids)
    _check_threshold(root, ROOT, signers)
    new_keys = {role: [signer.public_key for signer in new] for role, new in (replaced or {}).items()}
    new_keys |= {role: [key] for role, key in (online or {}).items()}
    for role, public in new_keys.items():
        for keyid in list(root.roles[role].keyids):
            root.revoke_key(keyid, role)
        for key in public:
            root.add_key(key, role)
        if len(public) < root.roles[role].threshold:
            raise MachineError(
                f"{root.roles[role].threshold} keys must sign {role}.json, and there are {len(public)} new ones",
                kind=ErrorKind.PRECONDITION,
                remedy="give a folder for each new key: --into FOLDER --into FOLDER",
            )
    root.version += 1
    root.expires = _expiry(ROOT, now)
    everyone = {**signers, **{new.public_key.keyid: new for new in (replaced or {}).get(ROOT, ())}}
    _check_threshold(root, ROOT, everyone)
    chosen = before | frozenset(root.roles[ROOT].keyids)
    return _signed(root, [signer for keyid, signer in sorted(everyone.items()) if keyid in chosen])


def next_targets(
    current: bytes | None, root: bytes, entries: Entries, signers: Mapping[str, Any], now: datetime
) -> bytes:
    """Return the version of targets.json after `current` with these entries. PERMISSION if there are too few keys."""
    from tuf.api.metadata import Targets

    role = parsed(root, ROOT).signed
    _check_threshold(role, TARGETS, signers)
    version = 1 if current is None else version_of(current, TARGETS) + 1
    targets = Targets(version, expires=_expiry(TARGETS, now), targets=entries)
    keyids = role.roles[TARGETS].keyids
    return _signed(targets, [signer for keyid, signer in sorted(signers.items()) if keyid in keyids])


def entries_of(targets: bytes) -> Entries:
    """Return the entries of targets.json."""
    return dict(parsed(targets, TARGETS).signed.targets)


def entry_of(custom: Custom, sha256: str, size: int) -> Any:
    """Return the entry of a release file."""
    import msgspec
    from tuf.api.metadata import TargetFile

    fields = msgspec.json.decode(msgspec.json.encode(custom))  # with lists, as in metadata that was parsed
    return TargetFile(size, {"sha256": sha256}, custom.path, {"custom": fields})


def public_key(keyid: str, public: str) -> Any:
    """Return a public key of the cloud; `public` is in hexadecimal digits."""
    from securesystemslib.signer import SSlibKey

    return SSlibKey(keyid, KEY_TYPE, KEY_TYPE, {"public": public})


def keys_of(root: bytes) -> Mapping[str, tuple[int, Sequence[str]]]:
    """Return threshold and key ids of each role."""
    roles = parsed(root, ROOT).signed.roles
    return {name: (int(role.threshold), list(role.keyids)) for name, role in roles.items()}


def _check_threshold(root: Any, role: str, signers: Mapping[str, Any]) -> None:
    threshold, present = root.roles[role].threshold, set(root.roles[role].keyids) & signers.keys()
    if len(present) < threshold:
        raise MachineError(
            f"{role}.json needs {threshold} signature{'s' * (threshold != 1)}, and the folders have {len(present)} of "
            "its keys",
            kind=ErrorKind.PERMISSION,
            remedy="give the folders with the other keys too: --keys FOLDER --keys FOLDER",
        )


def _expiry(role: str, now: datetime) -> datetime:
    """Return an expiry a little before the latest one, because clocks differ."""
    lifetime = LIFETIMES[role]
    return now.replace(microsecond=0) + lifetime - lifetime / 100


def _signed(part: Any, signers: Iterable[Any]) -> bytes:
    from tuf.api.metadata import Metadata

    document: Any = Metadata(part)
    for signer in signers:
        document.sign(signer, append=True)
    return bytes(document.to_bytes())
