"""Captured files, such as images and point clouds. Their contents are in cloud.blobs under the row's `blob`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.blobs import Blob
from cloud.domain.data.filters import DataFilter, DataScope, where
from cloud.domain.data.pages import Page, rows_of
from cloud.domain.data.sources import COLUMNS, DataSource, chunks, number_of, read
from cloud.domain.organizations.tenants import missing
from cloud.store import trash
from cloud.store.sql import Sql, Value, inserted
from cloud.values.names import new_id
from cloud.values.times import moment_of, stored

AT_ONCE: Final = 1000  # files that one transaction deletes by a filter; others wait in the meantime


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to be stored. `key` is the same for repeated uploads of one file."""

    key: str
    source: DataSource
    type: str  # binary, file or unspecified
    name: str
    extension: str
    mime: str
    requested: datetime
    received: datetime


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A stored file. `number` increases in the order of arrival."""

    number: int
    id: str
    source: DataSource
    blob: str
    digest: str
    size: int
    type: str
    name: str
    extension: str
    mime: str
    requested: datetime
    received: datetime
    synced: datetime


@dataclass(frozen=True, slots=True)
class Total:
    """Number of files or readings, and their total size in bytes."""

    count: int = 0
    size: int = 0


def keep(sql: Sql, new: NewFile, blob: Blob, now: datetime) -> tuple[str, bool]:
    """Store a file unless it is stored already; return its id, and whether it is new. If not, `blob` is not used."""
    row = sql.row("SELECT id FROM files WHERE key = ?", new.key)
    if row is not None:
        return row["id"], False
    subject = new_id()
    values: dict[str, Value] = {
        "id": subject,
        "key": new.key,
        "source": number_of(sql, new.source),
        "blob": blob.key,
        "digest": blob.digest,
        "size": blob.size,
        "type": new.type,
        "name": new.name,
        "extension": new.extension,
        "mime": new.mime,
        "requested": stored(new.requested),
        "received": stored(new.received),
        "synced": stored(now),
    }
    inserted(sql, "files", values)
    return subject, True


_FILE: Final = f"""
    SELECT files.number AS number, id, blob, digest, size, type, name, extension, mime, requested, received, synced,
        {COLUMNS}
    FROM files JOIN data_sources ON data_sources.number = files.source
"""


def file(sql: Sql, subject: str) -> FileRecord:
    """Return one file; NOT_FOUND."""
    row = sql.row(f"{_FILE} WHERE files.id = ?", subject)
    if row is None:
        raise missing("file", subject)
    return _file(row)


def by_ids(sql: Sql, subjects: Iterable[str]) -> list[FileRecord]:
    """Return files in the order of the ids, without duplicates; NOT_FOUND names the first missing one."""
    return [file(sql, subject) for subject in dict.fromkeys(subjects)]


def query(sql: Sql, data_filter: DataFilter, scope: DataScope, page: Page) -> list[FileRecord]:
    """Return a page of files, ordered by capture time."""
    return [_file(row) for row in rows_of(sql, "files", _FILE, data_filter, scope, page)]


# SQLite keeps the order of tables in a CROSS JOIN, so it searches the index of each source. For other databases this is
# an ordinary JOIN.
_OF_SOURCES: Final = "FROM data_sources CROSS JOIN files WHERE files.source = data_sources.number"


def total(sql: Sql, data_filter: DataFilter, scope: DataScope) -> Total:
    """Return number and total size of the matching files. This reads all of them."""
    condition, values = where("files", data_filter, scope)
    row = sql.row(
        f"SELECT COUNT(*) AS count, COALESCE(SUM(files.size), 0) AS size {_OF_SOURCES} AND {condition}", *values
    )
    return Total(int(row["count"]), int(row["size"])) if row is not None else Total()


def ids(sql: Sql, data_filter: DataFilter, scope: DataScope, limit: int | None = None) -> list[str]:
    """Return the ids of all matching files, or of `limit` of them."""
    condition, values = where("files", data_filter, scope)
    at_most, limit_values = ("", ()) if limit is None else (" LIMIT ?", (limit,))
    rows = sql.rows(f"SELECT files.id AS id {_OF_SOURCES} AND {condition}{at_most}", *values, *limit_values)
    return [row["id"] for row in rows]


def delete(sql: Sql, subjects: Sequence[str], now: datetime) -> int:
    """Delete files and everything that refers to them; return their number. Their contents go to the trash."""
    count = 0
    for chunk in chunks(list(subjects)):
        marks = ", ".join("?" * len(chunk))
        for table in ("file_tags", "file_labels", "dataset_files", "dataset_suspects"):
            sql.run(f"DELETE FROM {table} WHERE file_id IN ({marks})", *chunk)
        rows = sql.rows(f"DELETE FROM files WHERE id IN ({marks}) RETURNING blob", *chunk)
        trash.put(sql, [row["blob"] for row in rows], now)
        count += len(rows)
    return count


def blobs_from(sql: Sql, first: str, last: str) -> dict[str, Blob]:
    """Return the blobs of files with keys from `first` on and before `last`."""
    rows = sql.rows("SELECT blob, size, digest FROM files WHERE blob >= ? AND blob < ?", first, last)
    return {row["blob"]: Blob(row["blob"], row["size"], row["digest"]) for row in rows}


def sample(sql: Sql, count: int) -> list[str]:
    """Return the keys of the blobs that arrived first and last, at most `count` of each."""
    rows = sql.rows("SELECT blob FROM files ORDER BY number LIMIT ?", count)
    return [row["blob"] for row in rows + sql.rows("SELECT blob FROM files ORDER BY number DESC LIMIT ?", count)]


# ---- tags


def tags_of(sql: Sql, subjects: Iterable[str]) -> dict[str, list[str]]:
    """Return the sorted tags of each file."""
    return grouped(sql, "SELECT file_id, tag AS value FROM file_tags", "ORDER BY file_id, tag", subjects)


def datasets_of(sql: Sql, subjects: Iterable[str]) -> dict[str, list[str]]:
    """Return the ids of the datasets that contain each file."""
    return grouped(
        sql, "SELECT file_id, dataset_id AS value FROM dataset_files", "ORDER BY file_id, dataset_id", subjects
    )


def grouped(sql: Sql, query: str, order: str, subjects: Iterable[str]) -> dict[str, list[str]]:
    """Return the values of the column `value` for each file."""
    file_ids = list(subjects)
    values: dict[str, list[str]] = {subject: [] for subject in file_ids}
    for chunk in chunks(file_ids):
        marks = ", ".join("?" * len(chunk))
        for row in sql.rows(f"{query} WHERE file_id IN ({marks}) {order}", *chunk):
            values[row["file_id"]].append(row["value"])
    return values


def add_tags(sql: Sql, subjects: Iterable[str], tags: Sequence[str]) -> None:
    """Add tags that the files do not have yet."""
    sql.many(
        "INSERT INTO file_tags (file_id, tag) VALUES (?, ?) ON CONFLICT (file_id, tag) DO NOTHING",
        [(subject, tag) for subject in subjects for tag in tags],
    )


def remove_tags(sql: Sql, subjects: Sequence[str], tags: Sequence[str]) -> int:
    """Remove tags; return how many were removed."""
    return sum(
        sql.run(
            f"DELETE FROM file_tags WHERE tag = ? AND file_id IN ({', '.join('?' * len(chunk))})",
            tag,
            *chunk,
        )
        for chunk in chunks(list(subjects))
        for tag in tags
    )


def all_tags(sql: Sql, data_filter: DataFilter, scope: DataScope) -> list[str]:
    """Return the distinct tags of the matching files, sorted."""
    condition, values = where("files", data_filter, scope)
    rows = sql.rows(
        f"""
        SELECT DISTINCT tag FROM data_sources CROSS JOIN files CROSS JOIN file_tags
        WHERE files.source = data_sources.number AND file_tags.file_id = files.id AND {condition}
        """,
        *values,
    )
    return sorted(row["tag"] for row in rows)


def _file(row: Mapping[str, Any]) -> FileRecord:
    return FileRecord(
        number=row["number"],
        id=row["id"],
        source=read(row),
        blob=row["blob"],
        digest=row["digest"],
        size=row["size"],
        type=row["type"],
        name=row["name"],
        extension=row["extension"],
        mime=row["mime"],
        requested=moment_of(row["requested"]),
        received=moment_of(row["received"]),
        synced=moment_of(row["synced"]),
    )
