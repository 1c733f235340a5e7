"""Files in the registry: one for each version and platform of an item, never overwritten."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cloud.blobs import Blob
from cloud.domain.organizations.tenants import missing
from cloud.domain.registry import versions
from cloud.domain.registry.items import MODULE, TOPIC, RegistryItem
from cloud.store import trash
from cloud.store.sql import Conflict, Sql, counted, inserted
from cloud.values.limits import REGISTRY_VERSIONS
from cloud.values.names import new_id
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class File:
    """One archive. `digest` is the SHA-256 in hexadecimal digits, `size` is in bytes."""

    id: str
    item_id: str
    version: str
    platform: str
    tags: str
    blob: str
    size: int
    digest: str
    uploaded: datetime
    metadata: Mapping[str, Any]

    @property
    def path(self) -> str:
        """Download path on this cloud."""
        return f"/packages/{self.id}"


@dataclass(frozen=True, slots=True)
class FileKey:
    """Unique key of a file within its item."""

    version: str
    platform: str
    tags: str = ""


def checked_place(item: RegistryItem, version: str, platform: str, tags: Sequence[str] = ()) -> FileKey:
    """Return the place for an upload; INVALID."""
    return FileKey(
        versions.checked_version(version, semantic=item.type == MODULE),
        versions.checked_platform(platform),
        versions.checked_tags(tags),
    )


def is_free(sql: Sql, item: RegistryItem, place: FileKey) -> None:
    """Raise EXISTS if there already is a file at this place."""
    row = sql.row(
        "SELECT id FROM registry_files WHERE item_id = ? AND version = ? AND platform = ? AND tags = ?",
        item.id, place.version, place.platform, place.tags,
    )  # fmt: skip
    if row is not None:
        raise _already_uploaded(item, place)


def add(sql: Sql, item: RegistryItem, place: FileKey, blob: Blob, now: datetime, metadata: Mapping[str, Any]) -> File:
    """Add an upload whose blob is stored; EXISTS if there already is a file at this place."""
    REGISTRY_VERSIONS.check_count(counted(sql, "registry_files", "item_id", item.id), "the registry entry")
    subject = new_id()
    try:
        inserted(
            sql,
            "registry_files",
            {
                "id": subject,
                "item_id": item.id,
                "version": place.version,
                "platform": place.platform,
                "tags": place.tags,
                "blob": blob.key,
                "size": blob.size,
                "digest": blob.digest,
                "uploaded": stored(now),
                "metadata": json.dumps(dict(metadata)),
            },
        )
    except Conflict:
        raise _already_uploaded(item, place) from None
    sql.run("UPDATE registry_items SET updated = ? WHERE id = ?", stored(now), item.id)
    sql.notify(TOPIC, item.id)
    return file(sql, subject)


def _already_uploaded(item: RegistryItem, place: FileKey) -> MachineError:
    return MachineError(
        f"version {place.version} of {item.wire_id} for {place.platform} exists already and cannot be replaced",
        kind=ErrorKind.EXISTS,
        remedy="upload it as another version",
    )


_FILE = "SELECT id, item_id, version, platform, tags, blob, size, digest, uploaded, metadata FROM registry_files"


def file(sql: Sql, subject: str) -> File:
    """Return one file; NOT_FOUND."""
    row = sql.row(f"{_FILE} WHERE id = ?", subject)
    if row is None:
        raise missing("package", subject)
    return _file(row)


def files(sql: Sql, item: str) -> list[File]:
    """Return all files of an item, in order of upload."""
    return [_file(row) for row in sql.rows(f"{_FILE} WHERE item_id = ? ORDER BY uploaded, id", item)]


def _file(row: Mapping[str, Any]) -> File:
    return File(
        id=row["id"],
        item_id=row["item_id"],
        version=row["version"],
        platform=row["platform"],
        tags=row["tags"],
        blob=row["blob"],
        size=row["size"],
        digest=row["digest"],
        uploaded=moment_of(row["uploaded"]),
        metadata=json.loads(row["metadata"]),
    )


def delete_version(sql: Sql, item: RegistryItem, version: str, now: datetime) -> None:
    """Delete all files of a version; NOT_FOUND. Their contents go to the trash."""
    blobs = [upload.blob for upload in files(sql, item.id) if upload.version == version]
    if not blobs:
        raise MachineError(f"{item.wire_id} has no version {version[:60]!r}", kind=ErrorKind.NOT_FOUND)
    sql.run("DELETE FROM registry_files WHERE item_id = ? AND version = ?", item.id, version)
    trash.put(sql, blobs, now)
    sql.notify(TOPIC, item.id)


def best(uploads: Sequence[File], item: RegistryItem, version_asked: str, platform: str, tags: Collection[str]) -> File:
    """Return the best file of an item for a version, platform and tags; NOT_FOUND lists what is available."""
    fitness = {upload.id: versions.fitness(upload.platform, upload.tags, platform, tags) for upload in uploads}
    usable = [upload for upload in uploads if fitness[upload.id] is not None]
    version = versions.chosen(version_asked, list(dict.fromkeys(upload.version for upload in usable)))
    if version is None:
        raise MachineError(_reason(uploads, usable, item, version_asked, platform), kind=ErrorKind.NOT_FOUND)
    return max((upload for upload in usable if upload.version == version), key=lambda upload: fitness[upload.id] or 0)


def _reason(
    uploads: Sequence[File], usable: Sequence[File], item: RegistryItem, version_asked: str, platform: str
) -> str:
    if not uploads:
        return f"{item.wire_id} has no versions yet"
    if not usable:
        available = ", ".join(sorted({upload.platform for upload in uploads}))
        if not platform:
            return f"{item.wire_id} is available for {available}; the machine has not reported its platform yet"
        return f"{item.wire_id} is not available for {versions.normal_platform(platform)}, only for {available}"
    available = ", ".join(versions.newest_first(dict.fromkeys(upload.version for upload in usable))[:5])
    return f"{item.wire_id} has no version {version_asked or versions.LATEST!r}; available: {available}"


def blobs_from(sql: Sql, first: str, last: str) -> dict[str, Blob]:
    """Return the blobs of uploads with keys from `first` on and before `last`."""
    rows = sql.rows("SELECT blob, size, digest FROM registry_files WHERE blob >= ? AND blob < ?", first, last)
    return {row["blob"]: Blob(row["blob"], row["size"], row["digest"]) for row in rows}


def sample(sql: Sql, count: int) -> list[str]:
    """Return the keys of the blobs that were uploaded first and last, at most `count` of each."""
    query = "SELECT blob FROM registry_files ORDER BY uploaded"
    return [row["blob"] for order in ("", " DESC") for row in sql.rows(f"{query}{order} LIMIT ?", count)]
