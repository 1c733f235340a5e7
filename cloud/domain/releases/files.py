"""Files of releases, identified by their hashes. A file is removed some time after no target refers to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cloud.blobs import Blob
from cloud.domain.organizations.tenants import missing
from cloud.store import trash
from cloud.store.sql import Conflict, Sql, Value, inserted
from cloud.values.limits import RELEASE_FILES
from cloud.values.names import new_id
from cloud.values.times import stored
from schema import ErrorKind, MachineError

UNUSED: Final = timedelta(days=1)
"""How long a file without a target is kept: for the metadata of an upload to arrive, and for downloads in progress."""


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """A file. `digest` is its SHA-256 in hexadecimal digits, `size` is in bytes."""

    id: str
    organization_id: str
    digest: str
    size: int
    blob: str

    @property
    def path(self) -> str:
        """Download path on this cloud, for signed links."""
        return self.path_of(self.id)

    @staticmethod
    def path_of(subject: str) -> str:
        """Return the download path of the file with an id."""
        return f"/releases/files/{subject}"


_FILE: Final = "SELECT id, organization_id, digest, size, blob FROM release_files"


def add(sql: Sql, owner: str, blob: Blob, now: datetime) -> ReleaseFile:
    """Add an upload whose blob is stored. EXISTS if the organization has this content, EXHAUSTED if it has too many."""
    row = sql.row("SELECT COUNT(*) AS count FROM release_files WHERE organization_id = ?", owner)
    RELEASE_FILES.check_count(int(row["count"]) if row is not None else 0, "the repository")
    values: dict[str, Value] = {
        "id": new_id(),
        "organization_id": owner,
        "digest": blob.digest,
        "size": blob.size,
        "blob": blob.key,
    }
    try:
        inserted(sql, "release_files", {**values, "uploaded": stored(now), "unused": stored(now)})
    except Conflict:
        raise MachineError("this file was uploaded before", kind=ErrorKind.EXISTS) from None
    return ReleaseFile(str(values["id"]), owner, blob.digest, blob.size, blob.key)


def by_digest(sql: Sql, owner: str, digest: str) -> ReleaseFile | None:
    """Return the file of an organization with this content, or None."""
    row = sql.row(f"{_FILE} WHERE organization_id = ? AND digest = ?", owner, digest)
    return None if row is None else _file(row)


def file(sql: Sql, subject: str) -> ReleaseFile:
    """Return one file; NOT_FOUND."""
    row = sql.row(f"{_FILE} WHERE id = ?", subject)
    if row is None:
        raise missing("release file", subject)
    return _file(row)


def mark_used(sql: Sql, owner: str, digests: Collection[str], now: datetime) -> None:
    """Note which files the current targets refer to."""
    sql.run("UPDATE release_files SET unused = ? WHERE organization_id = ? AND unused IS NULL", stored(now), owner)
    sql.many(
        "UPDATE release_files SET unused = NULL WHERE organization_id = ? AND digest = ?",
        [(owner, digest) for digest in sorted(digests)],
    )


def expire(sql: Sql, now: datetime) -> int:
    """Delete files that no target has referred to for UNUSED; return their number. Their contents go to the trash."""
    rows = sql.rows("DELETE FROM release_files WHERE unused < ? RETURNING blob", stored(now - UNUSED))
    trash.put(sql, [row["blob"] for row in rows], now)
    return len(rows)


def blobs_from(sql: Sql, first: str, last: str) -> dict[str, Blob]:
    """Return the blobs of files with keys from `first` on and before `last`."""
    rows = sql.rows("SELECT blob, size, digest FROM release_files WHERE blob >= ? AND blob < ?", first, last)
    return {row["blob"]: Blob(row["blob"], row["size"], row["digest"]) for row in rows}


def sample(sql: Sql, count: int) -> list[str]:
    """Return the keys of the blobs that were uploaded first and last, at most `count` of each."""
    query = "SELECT blob FROM release_files ORDER BY uploaded"
    return [row["blob"] for order in ("", " DESC") for row in sql.rows(f"{query}{order} LIMIT ?", count)]


def _file(row: Mapping[str, Any]) -> ReleaseFile:
    return ReleaseFile(row["id"], row["organization_id"], row["digest"], row["size"], row["blob"])
