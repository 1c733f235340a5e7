"""The API key of a running training script.

It has no role anywhere, so every call that needs one is refused. It exists from a start of the job until that start
ends, and lets its holder read the files of the job's dataset: see `readable` in cloud.domain.permissions.data_scope.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cloud.store.sql import Sql, Value, inserted
from cloud.values.author import KEY, Author
from cloud.values.names import new_id, new_secret
from cloud.values.times import stored
from rpc.access import digest_of


@dataclass(frozen=True, slots=True)
class Readable:
    """What the key of a job may read."""

    organization_id: str
    dataset_id: str


def create(sql: Sql, job: str, organization: str, now: datetime) -> tuple[str, str]:
    """Create the key of a job that starts, instead of an earlier one; return its id and the key."""
    delete(sql, job)
    subject, key = new_id(), new_secret()
    row: dict[str, Value] = {
        "id": subject,
        "organization_id": organization,
        "name": f"training job {job}",
        "created": stored(now),
    }
    inserted(sql, "keys", {**row, "digest": digest_of(key)})
    inserted(sql, "training_keys", {"job_id": job, "key_id": subject})
    sql.notify("key", subject)
    return subject, key


def delete(sql: Sql, job: str) -> None:
    """Delete the key of a job, if it has one; its tokens are void at once."""
    for row in sql.rows("DELETE FROM training_keys WHERE job_id = ? RETURNING key_id", job):
        sql.run("DELETE FROM grants WHERE key_id = ?", row["key_id"])
        sql.run("DELETE FROM keys WHERE id = ?", row["key_id"])
        sql.notify("key", row["key_id"])


def readable(sql: Sql, author: Author) -> Readable | None:
    """Return what a caller may read as a training job; None for other callers."""
    if author.type != KEY:
        return None
    row = sql.row(
        """
        SELECT training_jobs.organization_id AS organization_id, dataset_id FROM training_keys
        JOIN training_jobs ON training_jobs.id = training_keys.job_id
        JOIN keys ON keys.id = training_keys.key_id WHERE key_id = ?
        """,
        author.name,
    )
    return Readable(row["organization_id"], row["dataset_id"]) if row is not None else None
