"""Datasets: named collections of files within one organization."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cloud.domain.data.sources import chunks
from cloud.domain.organizations.tenants import missing, organization
from cloud.store.sql import Conflict, Sql, counted, inserted
from cloud.values.limits import DATASETS
from cloud.values.names import checked_name, new_id
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class DatasetRecord:
    """A dataset; `files` is the number of its files."""

    id: str
    organization_id: str
    name: str
    created: datetime
    files: int


_DATASET = """
    SELECT id, organization_id, name, created,
        (SELECT COUNT(*) FROM dataset_files WHERE dataset_files.dataset_id = datasets.id) AS files
    FROM datasets
"""


def create(sql: Sql, owner: str, name: str, now: datetime) -> str:
    """Create a dataset; return its id. EXISTS if the name is taken in the organization."""
    organization(sql, owner)
    DATASETS.check_count(counted(sql, "datasets", "organization_id", owner), "the organization")
    subject, name = new_id(), checked_name(name, "a dataset")
    try:
        inserted(sql, "datasets", {"id": subject, "organization_id": owner, "name": name, "created": stored(now)})
    except Conflict:
        raise _name_taken(name) from None
    return subject


def dataset(sql: Sql, subject: str) -> DatasetRecord:
    """Return one dataset; NOT_FOUND."""
    row = sql.row(f"{_DATASET} WHERE id = ?", subject)
    if row is None:
        raise missing("dataset", subject)
    return _dataset(row)


def datasets(sql: Sql, owner: str) -> list[DatasetRecord]:
    """Return all datasets of an organization, ordered by name."""
    return [_dataset(row) for row in sql.rows(f"{_DATASET} WHERE organization_id = ? ORDER BY name", owner)]


def page(sql: Sql, owner: str, after: str, limit: int) -> list[DatasetRecord]:
    """Return the datasets of an organization with names after `after`, ordered by name, at most `limit`."""
    condition = "WHERE organization_id = ? AND name > ? ORDER BY name LIMIT ?"
    return [_dataset(row) for row in sql.rows(f"{_DATASET} {condition}", owner, after, limit)]


def rename(sql: Sql, subject: str, name: str) -> None:
    """Rename a dataset; EXISTS if the name is taken."""
    try:
        sql.run("UPDATE datasets SET name = ? WHERE id = ?", checked_name(name, "a dataset"), subject)
    except Conflict:
        raise _name_taken(name) from None


def delete(sql: Sql, subject: str) -> None:
    """Delete a dataset; its files stay."""
    for table in ("dataset_files", "dataset_labels", "dataset_suspects"):
        sql.run(f"DELETE FROM {table} WHERE dataset_id = ?", subject)
    sql.run("DELETE FROM datasets WHERE id = ?", subject)


def add(sql: Sql, subject: str, files: Iterable[str]) -> None:
    """Add files that are not in the dataset yet. NOT_FOUND for a file of another organization."""
    owner = dataset(sql, subject).organization_id
    file_ids = list(dict.fromkeys(files))
    own_ids: set[str] = set()
    for chunk in chunks(file_ids):
        rows = sql.rows(
            f"""
            SELECT files.id AS id FROM files JOIN data_sources ON data_sources.number = files.source
            WHERE data_sources.organization_id = ? AND files.id IN ({", ".join("?" * len(chunk))})
            """,
            owner,
            *chunk,
        )
        own_ids |= {row["id"] for row in rows}
    for file_id in file_ids:
        if file_id not in own_ids:
            raise missing("file", file_id)
    sql.many(
        "INSERT INTO dataset_files (dataset_id, file_id) VALUES (?, ?) ON CONFLICT (dataset_id, file_id) DO NOTHING",
        [(subject, file_id) for file_id in file_ids],
    )


def remove(sql: Sql, subject: str, files: Sequence[str]) -> int:
    """Remove files from a dataset; return how many were in it."""
    count = 0
    for chunk in chunks(list(files)):
        condition = f"dataset_id = ? AND file_id IN ({', '.join('?' * len(chunk))})"
        count += sql.run(f"DELETE FROM dataset_files WHERE {condition}", subject, *chunk)
        sql.run(f"DELETE FROM dataset_suspects WHERE {condition}", subject, *chunk)
    return count


def merge(sql: Sql, owner: str, subjects: Sequence[str], name: str, now: datetime) -> str:
    """Create a dataset with the files of several; return its id. NOT_FOUND for a dataset of another organization."""
    merged = create(sql, owner, name, now)
    for subject in subjects:
        if dataset(sql, subject).organization_id != owner:
            raise missing("dataset", subject)
        sql.run(
            """
            INSERT INTO dataset_files (dataset_id, file_id) SELECT ?, file_id FROM dataset_files WHERE dataset_id = ?
            ON CONFLICT (dataset_id, file_id) DO NOTHING
            """,
            merged,
            subject,
        )
    return merged


def _dataset(row: Mapping[str, Any]) -> DatasetRecord:
    return DatasetRecord(row["id"], row["organization_id"], row["name"], moment_of(row["created"]), int(row["files"]))


def _name_taken(name: str) -> MachineError:
    return MachineError(
        f"there is already a dataset called {name!r}", kind=ErrorKind.EXISTS, remedy="choose another name"
    )
