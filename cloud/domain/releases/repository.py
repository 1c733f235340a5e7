"""The TUF repository of an organization in the database.

Root and targets are uploaded; `publish` verifies them and signs snapshot and timestamp in the same transaction, so
that clients never see a mixture. Call `metadata.load` in a thread before a transaction that signs.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cloud.domain.organizations.tenants import missing
from cloud.domain.releases import files, metadata
from cloud.domain.releases.metadata import SignedTarget, VerifiedMetadata
from cloud.store.sql import Sql, Value, inserted
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError
from uplink.releases import LIFETIMES, ONLINE, ROOT, SNAPSHOT, TARGETS, TIMESTAMP, Custom

TOPIC: Final = "releases"
"""Topic of events about repositories; the subject is the organization."""

KEPT: Final = 20
"""Versions of targets and snapshot that are kept, for clients that have just read an older timestamp."""

MAX_KEYS: Final = 4
"""Keys of the cloud for one role that no root.json lists yet."""

_NAME: Final = re.compile(r"(?:(\d{1,18})\.)?(root|targets|snapshot|timestamp)\.json")


@dataclass(frozen=True, slots=True)
class Document:
    """A metadata file as it was signed."""

    role: str
    version: int
    content: bytes
    expires: datetime


@dataclass(frozen=True, slots=True)
class Published:
    """A target of the current targets.json with the id of its file."""

    custom: Custom
    digest: str
    size: int
    file: str


# ---- keys of the cloud


def create_keys(sql: Sql, owner: str, now: datetime) -> dict[str, metadata.OnlineKey]:
    """Create keys of the cloud for snapshot and timestamp, which the next root.json must list; return them by role.

    Keys that no root.json lists are removed if there are too many.
    """
    keys = {}
    for role in ONLINE:
        key = keys[role] = metadata.new_key(secrets.token_bytes(32))
        row = {"organization_id": owner, "role": role, "keyid": key.keyid, "private_key": key.seed}
        inserted(sql, "release_keys", {**row, "created": stored(now)})
        in_use = _in_use(sql, owner, role)
        rows = sql.rows(
            "SELECT keyid FROM release_keys WHERE organization_id = ? AND role = ? ORDER BY created DESC", owner, role
        )
        pending = [row["keyid"] for row in rows if row["keyid"] not in in_use]
        sql.many(
            "DELETE FROM release_keys WHERE organization_id = ? AND role = ? AND keyid = ?",
            [(owner, role, keyid) for keyid in pending[MAX_KEYS:]],
        )
    return keys


def _in_use(sql: Sql, owner: str, role: str) -> frozenset[str]:
    root = newest(sql, owner, ROOT)
    if root is None:
        return frozenset()
    from tuf.api.metadata import Metadata

    return frozenset(Metadata.from_bytes(root.content).signed.roles[role].keyids)


def _online_keys(sql: Sql, owner: str) -> dict[str, dict[str, str]]:
    """Return the private keys by role and key id."""
    keys: dict[str, dict[str, str]] = {role: {} for role in ONLINE}
    for row in sql.rows("SELECT role, keyid, private_key FROM release_keys WHERE organization_id = ?", owner):
        keys[row["role"]][row["keyid"]] = row["private_key"]
    return keys


# ---- reading


def newest(sql: Sql, owner: str, role: str) -> Document | None:
    """Return the current metadata of a role, or None if there is no repository."""
    row = sql.row(
        "SELECT role, version, content, expires FROM release_metadata WHERE organization_id = ? AND role = ? "
        "ORDER BY version DESC LIMIT 1",
        owner,
        role,
    )
    return None if row is None else Document(role, row["version"], bytes(row["content"]), moment_of(row["expires"]))


def exists(sql: Sql, owner: str) -> bool:
    """Return whether an organization has a repository."""
    return sql.row("SELECT due FROM release_signing WHERE organization_id = ?", owner) is not None


def document(sql: Sql, owner: str, name: str) -> Document:
    """Return a metadata file by its name: `timestamp.json`, which is the newest, `3.snapshot.json`; NOT_FOUND."""
    match = _NAME.fullmatch(name)
    if match is not None:
        number, role = match.groups()
        if number is None:
            latest = newest(sql, owner, role)
            if latest is not None:
                return latest
        elif role != TIMESTAMP:
            row = sql.row(
                "SELECT content, expires FROM release_metadata WHERE organization_id = ? AND role = ? AND version = ?",
                owner,
                role,
                int(number),
            )
            if row is not None:
                return Document(role, int(number), bytes(row["content"]), moment_of(row["expires"]))
    raise missing("release metadata", name)


def targets(sql: Sql, owner: str, program: str = "") -> list[Published]:
    """Return the targets in force, of all programs or one."""
    rows = sql.rows(
        f"""
        SELECT release_targets.program, version, platform, channels, release_targets.digest, size, id
        FROM release_targets JOIN release_files ON release_files.organization_id = release_targets.organization_id
            AND release_files.digest = release_targets.digest
        WHERE release_targets.organization_id = ? {"AND program = ?" if program else ""} ORDER BY path
        """,
        owner,
        *([program] if program else []),
    )
    return [
        Published(
            Custom(row["program"], row["version"], row["platform"], tuple(filter(None, row["channels"].split(",")))),
            row["digest"],
            row["size"],
            row["id"],
        )
        for row in rows
    ]


def target_file(sql: Sql, owner: str, path: str) -> files.ReleaseFile:
    """Return the file of a target by its name, whose last segment may begin with the hash and a dot; NOT_FOUND."""
    folder, _, last = path.rpartition("/")
    digest, dot, rest = last.partition(".")
    name, expected = (f"{folder}/{rest}", digest) if dot and len(digest) == 64 else (path, "")
    row = sql.row("SELECT digest FROM release_targets WHERE organization_id = ? AND path = ?", owner, name)
    if row is None or expected not in ("", row["digest"]):
        raise missing("release", path)
    file = files.by_digest(sql, owner, row["digest"])
    if file is None:
        raise missing("release", path)
    return file


# ---- writing


def publish(sql: Sql, owner: str, now: datetime, *, root: bytes | None, new_targets: bytes | None) -> None:
    """Verify and store new versions of root, targets or both, and sign snapshot and timestamp.

    Raises INVALID, PERMISSION (signatures), or PRECONDITION: a version does not follow, the first upload lacks one of
    both, a file was not uploaded, or the targets in force are not valid with the new root.
    """
    if root is None and new_targets is None:
        raise MachineError("neither root.json nor targets.json was sent", kind=ErrorKind.INVALID)
    keys = _online_keys(sql, owner)
    current_root, current_targets = newest(sql, owner, ROOT), newest(sql, owner, TARGETS)
    if current_root is None and (root is None or new_targets is None):
        raise MachineError(
            "this organization has no release repository",
            kind=ErrorKind.PRECONDITION,
            remedy="machine cloud releases init",
        )
    if root is not None:
        online = {role: frozenset(by_id) for role, by_id in keys.items()}
        checked = metadata.check_root(root, None if current_root is None else current_root.content, online, now)
        _store(sql, owner, ROOT, checked, root, now)
        current_root = Document(ROOT, checked.version, root, checked.expires)
        assert checked.keyids is not None
        for role in ONLINE:
            sql.run(
                "DELETE FROM release_keys WHERE organization_id = ? AND role = ? AND keyid <> ?",
                owner,
                role,
                checked.keyids[role][0],
            )
    assert current_root is not None
    if new_targets is not None:
        before = 0 if current_targets is None else current_targets.version
        checked = metadata.check_targets(new_targets, current_root.content, before, now)
        _check_files(sql, owner, checked.targets)
        _store(sql, owner, TARGETS, checked, new_targets, now)
        _index(sql, owner, checked.targets, now)
    elif metadata.read_targets(_content(current_targets), current_root.content) is None:
        raise MachineError(
            "the targets in force are not signed with the keys of the new root.json",
            kind=ErrorKind.PRECONDITION,
            remedy="send targets.json signed with the new keys together with it",
        )
    _sign(sql, owner, now, snapshot=True)
    sql.notify(TOPIC, owner)


def due(sql: Sql) -> dict[str, datetime]:
    """Return when each repository is to be signed again, the first one first."""
    rows = sql.rows("SELECT organization_id, due FROM release_signing ORDER BY due")
    return {row["organization_id"]: moment_of(row["due"]) for row in rows}


def renew(sql: Sql, owner: str, now: datetime) -> None:
    """Sign timestamp, and snapshot if it is due, again; nothing if they are not due, because another replica did it."""
    row = sql.row("SELECT due FROM release_signing WHERE organization_id = ?", owner)
    if row is not None and moment_of(row["due"]) <= now:
        _sign(sql, owner, now, snapshot=False)


def _check_files(sql: Sql, owner: str, all_targets: Sequence[SignedTarget]) -> None:
    for target in all_targets:
        file = files.by_digest(sql, owner, target.digest)
        if file is None:
            raise MachineError(
                f"the file of {target.custom.path} (SHA-256 {target.digest[:16]}…) was not uploaded",
                kind=ErrorKind.PRECONDITION,
                remedy="repeat the upload, or withdraw this version",
            )
        if file.size != target.size:
            raise MachineError(
                f"targets.json gives {target.size:,} bytes for {target.custom.path}; its file has {file.size:,}",
                kind=ErrorKind.INVALID,
            )


def _index(sql: Sql, owner: str, all_targets: Sequence[SignedTarget], now: datetime) -> None:
    sql.run("DELETE FROM release_targets WHERE organization_id = ?", owner)
    sql.many(
        "INSERT INTO release_targets (organization_id, path, program, version, platform, channels, digest) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (
                owner,
                target.custom.path,
                target.custom.program,
                target.custom.version,
                target.custom.platform,
                ",".join(sorted(target.custom.channels)),
                target.digest,
            )
            for target in all_targets
        ],
    )
    files.mark_used(sql, owner, {target.digest for target in all_targets}, now)


def _sign(sql: Sql, owner: str, now: datetime, *, snapshot: bool) -> None:
    """Sign timestamp, and snapshot if requested or due; both are renewed after half of their lifetime.

    Versions are at least the time in seconds: after a database was restored from a backup, new versions are higher
    than all that clients have seen, so that they do not take them for a replay.
    """
    keys = _online_keys(sql, owner)
    seeds = {role: next(iter(keys[role].values())) for role in ONLINE if len(keys[role]) == 1}
    if len(seeds) < len(ONLINE):  # new keys wait for their root.json
        in_use = {role: _in_use(sql, owner, role) for role in ONLINE}
        seeds = {role: next(keys[role][keyid] for keyid in in_use[role] if keyid in keys[role]) for role in ONLINE}
    current, listed = newest(sql, owner, SNAPSHOT), newest(sql, owner, TARGETS)
    assert listed is not None
    if current is None or snapshot or _renewal(SNAPSHOT, current.expires) <= now:
        version = _next_version(current, now)
        content = metadata.sign_snapshot(seeds[SNAPSHOT], version, listed.version, now)
        current = Document(SNAPSHOT, version, content, metadata.expiry(content, SNAPSHOT))
        _store(sql, owner, SNAPSHOT, VerifiedMetadata(version, current.expires), content, now)
    timestamp = newest(sql, owner, TIMESTAMP)
    version = _next_version(timestamp, now)
    content = metadata.sign_timestamp(seeds[TIMESTAMP], version, current.content, now)
    expires = metadata.expiry(content, TIMESTAMP)
    _store(sql, owner, TIMESTAMP, VerifiedMetadata(version, expires), content, now)
    due = stored(min(_renewal(SNAPSHOT, current.expires), _renewal(TIMESTAMP, expires)))
    sql.run(
        "INSERT INTO release_signing (organization_id, due) VALUES (?, ?) "
        "ON CONFLICT (organization_id) DO UPDATE SET due = excluded.due",
        owner,
        due,
    )


def _renewal(role: str, expires: datetime) -> datetime:
    half: timedelta = LIFETIMES[role] / 2
    return expires - half


def _next_version(document: Document | None, now: datetime) -> int:
    return max(0 if document is None else document.version + 1, int(now.timestamp()))


def _content(document: Document | None) -> bytes:
    assert document is not None
    return document.content


def _store(sql: Sql, owner: str, role: str, checked: VerifiedMetadata, content: bytes, now: datetime) -> None:
    row: dict[str, Value] = {
        "organization_id": owner,
        "role": role,
        "version": checked.version,
        "content": content,
    }
    inserted(sql, "release_metadata", {**row, "expires": stored(checked.expires), "stored": stored(now)})
    if role != ROOT:  # clients need every root.json
        kept = 1 if role == TIMESTAMP else KEPT
        oldest = sql.row(
            "SELECT version FROM release_metadata WHERE organization_id = ? AND role = ? "
            "ORDER BY version DESC LIMIT 1 OFFSET ?",
            owner,
            role,
            kept - 1,
        )
        if oldest is not None:
            sql.run(
                "DELETE FROM release_metadata WHERE organization_id = ? AND role = ? AND version < ?",
                owner,
                role,
                oldest["version"],
            )
