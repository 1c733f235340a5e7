"""Training jobs and their events: submission, lists, cancelling, deletion, logs. The queue is in `queue`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from cloud.domain.organizations.tenants import missing
from cloud.domain.registry import files, items, versions
from cloud.domain.registry.items import RegistryItem
from cloud.domain.training import job_keys
from cloud.domain.triggering.queue import enqueue
from cloud.store.sql import Sql, counted, inserted
from cloud.values.author import Author
from cloud.values.cursor import Cursor
from cloud.values.limits import TRAINING_JOBS, TRAINING_QUEUE
from cloud.values.names import new_id
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError, shortened
from training.jobs import (
    FINAL,
    JobEvent,
    JobHappening,
    JobState,
    ModelType,
    Status,
    decode_event,
    encode_event,
    next_state,
)
from triggers import TrainingEnded

KIND: Final = "training job"  # in error messages
TOPIC: Final = "training"  # event topic; subjects are jobs whose state changed
EVENTS: Final = "training events"  # event topic; subjects are jobs with new events
MODEL: Final = "ml_model"  # type of the registry items
LOGS: Final = timedelta(days=7)  # events are kept so long after the end of their job
PAGE: Final = 500  # log entries
AT_ONCE: Final = 5000  # events that one transaction deletes; the next one continues
MAX_ERROR: Final = 4096  # characters of the reason of a failure in messages
_UNFINISHED: Final = tuple(state.value for state in JobState if state not in FINAL)


@dataclass(frozen=True, slots=True)
class NewJob:
    """What a job is to do. `script` is the registry item of a custom job."""

    organization_id: str
    dataset_id: str
    model_name: str
    model_version: str
    model_type: ModelType = ModelType.UNSPECIFIED
    labels: tuple[str, ...] = ()
    script: str = ""
    script_version: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job. `reason` explains a failure; `model` is the package that it made."""

    number: int
    id: str
    task: NewJob
    author: Author
    state: JobState
    reason: str
    created: datetime
    changed: datetime
    started: datetime | None
    ended: datetime | None
    worker: str
    attempts: int
    model: str


@dataclass(frozen=True, slots=True)
class StoredJobEvent:
    """A stored event. Numbers increase within a job."""

    number: int
    time: datetime
    event: JobEvent


def submit(sql: Sql, task: NewJob, author: Author, now: datetime) -> str:
    """Add a job to the queue; return its id.

    EXISTS if the version of the model is taken, EXHAUSTED if the organization has too many jobs, INVALID for a name or
    version that the registry does not accept, PRECONDITION if the name belongs to an item of another type.
    """
    owner = task.organization_id
    items.checked_name(task.model_name)
    versions.checked_version(task.model_version, semantic=False)
    waiting = sum(counted_in(sql, owner, state) for state in _UNFINISHED)
    TRAINING_QUEUE.check_count(waiting, "the organization")
    TRAINING_JOBS.check_count(counted(sql, "training_jobs", "organization_id", owner), "the organization")
    check_free(sql, owner, task.model_name, task.model_version)
    subject, moment = new_id(), stored(now)
    inserted(
        sql,
        "training_jobs",
        {
            "id": subject,
            "organization_id": owner,
            "dataset_id": task.dataset_id,
            "model_name": task.model_name,
            "model_version": task.model_version,
            "model_type": int(task.model_type),
            "labels": json.dumps(task.labels),
            "script": task.script,
            "script_version": task.script_version,
            "arguments": json.dumps(dict(task.arguments)),
            "author_type": author.type,
            "author": author.name,
            "state": JobState.PENDING.value,
            "created": moment,
            "changed": moment,
        },
    )
    append(sql, subject, [Status(JobState.PENDING)], now)
    sql.notify(TOPIC, subject)
    return subject


def counted_in(sql: Sql, owner: str, state: str) -> int:
    """Return the number of jobs of an organization in a state."""
    row = sql.row("SELECT COUNT(*) AS count FROM training_jobs WHERE state = ? AND organization_id = ?", state, owner)
    return int(row["count"]) if row is not None else 0


def count_of_model(sql: Sql, owner: str, model: str) -> int:
    """Return the number of jobs that make versions of a model."""
    row = sql.row(
        "SELECT COUNT(*) AS count FROM training_jobs WHERE organization_id = ? AND model_name = ?", owner, model
    )
    return int(row["count"]) if row is not None else 0


def check_free(sql: Sql, owner: str, name: str, version: str) -> None:
    """Raise EXISTS if a model version exists or a job makes it; PRECONDITION if the name is not that of a model."""
    row = sql.row(
        "SELECT id FROM training_jobs WHERE organization_id = ? AND model_name = ? AND model_version = ? "
        "AND state NOT IN (?, ?)",
        owner,
        name,
        version,
        JobState.FAILED.value,
        JobState.CANCELED.value,
    )
    if row is not None:
        raise MachineError(
            f"version {version} of the model {name} belongs to the job {row['id']}",
            kind=ErrorKind.EXISTS,
            remedy="choose another version",
        )
    try:
        item = items.find(sql, f"{owner}:{name}")
    except MachineError:
        return
    check_type(item)
    files.is_free(sql, item, files.checked_place(item, version, ""))


def check_type(item: RegistryItem) -> None:
    """Raise PRECONDITION if a registry item is not a model."""
    if item.type != MODEL:
        raise MachineError(
            f"{item.wire_id} has the type {item.type}, not {MODEL}",
            kind=ErrorKind.PRECONDITION,
            remedy="choose another model name",
        )


def unfinished(sql: Sql) -> set[str]:
    """Return the ids of all jobs that have not ended."""
    marks = ", ".join("?" * len(_UNFINISHED))
    return {row["id"] for row in sql.rows(f"SELECT id FROM training_jobs WHERE state IN ({marks})", *_UNFINISHED)}


_JOB: Final = "SELECT * FROM training_jobs"


def job(sql: Sql, subject: str) -> JobRecord:
    """Return one job; NOT_FOUND."""
    row = sql.row(f"{_JOB} WHERE id = ?", subject)
    if row is None:
        raise missing(KIND, subject)
    return record(row)


def jobs(sql: Sql, owner: str, state: JobState | None = None) -> list[JobRecord]:
    """Return the jobs of an organization, newest first, all or those in one state."""
    rows = sql.rows(f"{_JOB} WHERE organization_id = ? ORDER BY number DESC", owner)
    return [record(row) for row in rows if state is None or row["state"] == state.value]


def page(sql: Sql, owner: str, state: JobState | None, before: int, limit: int) -> list[JobRecord]:
    """Return at most `limit` jobs of an organization with lower numbers than `before` (0: all), newest first."""
    rows = sql.rows(
        f"{_JOB} WHERE organization_id = ? AND (? = 0 OR number < ?) AND (? = '' OR state = ?) "
        "ORDER BY number DESC LIMIT ?",
        owner,
        before,
        before,
        state.value if state is not None else "",
        state.value if state is not None else "",
        limit,
    )
    return [record(row) for row in rows]


def record(row: Mapping[str, Any]) -> JobRecord:
    """Return a row of `training_jobs` as a record."""
    task = NewJob(
        row["organization_id"],
        row["dataset_id"],
        row["model_name"],
        row["model_version"],
        ModelType(row["model_type"]),
        tuple(json.loads(row["labels"])),
        row["script"],
        row["script_version"],
        json.loads(row["arguments"]),
    )
    return JobRecord(
        number=row["number"],
        id=row["id"],
        task=task,
        author=Author(row["author_type"], row["author"]),
        state=JobState(row["state"]),
        reason=row["reason"],
        created=moment_of(row["created"]),
        changed=moment_of(row["changed"]),
        started=moment_of(row["started"]) if row["started"] is not None else None,
        ended=moment_of(row["ended"]) if row["ended"] is not None else None,
        worker=row["worker"],
        attempts=row["attempts"],
        model=row["model"],
    )


def change(
    sql: Sql, subject: JobRecord, happening: JobHappening, now: datetime, *, reason: str = "", model: str = ""
) -> JobState:
    """Apply `happening` to a job, and record and announce the new state; PRECONDITION if it cannot happen now."""
    state = next_state(subject.state, happening)
    if state is subject.state:
        return state
    ended = stored(now) if state in FINAL else None
    keeps_worker = state in (JobState.IN_PROGRESS, JobState.CANCELING)
    reason = reason if state in (JobState.FAILED, JobState.PENDING) else ""
    sql.run(
        "UPDATE training_jobs SET state = ?, reason = ?, changed = ?, ended = ?, model = ?, "
        "worker = CASE WHEN ? = 1 THEN worker ELSE '' END WHERE id = ?",
        state.value,
        reason if state is JobState.FAILED else "",
        stored(now),
        ended,
        model if state is JobState.COMPLETED else "",
        int(keeps_worker),
        subject.id,
    )
    if not keeps_worker:
        job_keys.delete(sql, subject.id)
    append(sql, subject.id, [Status(state, reason)], now)
    sql.notify(TOPIC, subject.id)
    if state in FINAL:
        _announce(sql, job(sql, subject.id), now)
    return state


def _announce(sql: Sql, ended: JobRecord, now: datetime) -> None:
    """Queue the end of a job, for messages and alerts."""
    task = ended.task
    event = TrainingEnded(
        job_id=ended.id,
        state=ended.state.value,
        error=shortened(ended.reason, MAX_ERROR),
        model_name=task.model_name,
        model_version=task.model_version,
        model_type="" if task.script else task.model_type.name.lower(),
        package=ended.model,
        dataset_id=task.dataset_id,
        created=ended.created,
        started=ended.started,
        ended=now,
    )
    enqueue(sql, task.organization_id, event, now)


def cancel(sql: Sql, subject: str, now: datetime) -> None:
    """Cancel a job: one that waits at once, one that runs when its process has ended. PRECONDITION if it has ended."""
    change(sql, job(sql, subject), JobHappening.CANCEL, now)


def delete(sql: Sql, subject: str) -> None:
    """Delete a job that has ended, with its events; its model stays. PRECONDITION if it has not ended."""
    state = job(sql, subject).state
    if state not in FINAL:
        raise MachineError(
            f"the job is {state.value}: only a job that has ended can be deleted",
            kind=ErrorKind.PRECONDITION,
            remedy="cancel it first",
        )
    sql.run("DELETE FROM training_events WHERE job_id = ?", subject)
    sql.run("DELETE FROM training_reports WHERE job_id = ?", subject)
    sql.run("DELETE FROM training_jobs WHERE id = ?", subject)
    sql.notify(TOPIC, subject)


def forget(sql: Sql, owner: str) -> None:
    """Delete all jobs of an organization, which is deleted too. A worker that runs one of them stops at once."""
    for row in sql.rows("SELECT id FROM training_jobs WHERE organization_id = ?", owner):
        job_keys.delete(sql, row["id"])
        sql.notify(TOPIC, row["id"])
    own_jobs = "SELECT id FROM training_jobs WHERE organization_id = ?"
    sql.run(f"DELETE FROM training_events WHERE job_id IN ({own_jobs})", owner)
    sql.run(f"DELETE FROM training_reports WHERE job_id IN ({own_jobs})", owner)
    sql.run("DELETE FROM training_jobs WHERE organization_id = ?", owner)


def append(sql: Sql, subject: str, events: Sequence[JobEvent], now: datetime) -> None:
    """Add events to a job and announce them."""
    sql.in_turn(f"training {subject}")
    sql.many(
        "INSERT INTO training_events (job_id, happened, event) VALUES (?, ?, ?)",
        [(subject, stored(now), encode_event(event)) for event in events],
    )
    sql.notify(EVENTS, subject)


def events_after(sql: Sql, subject: str, number: int, limit: int = PAGE) -> list[StoredJobEvent]:
    """Return the events of a job with higher numbers than `number`, in order: a reader continues where it was."""
    rows = sql.rows(
        "SELECT number, happened, event FROM training_events WHERE job_id = ? AND number > ? ORDER BY number LIMIT ?",
        subject,
        number,
        limit,
    )
    return [StoredJobEvent(row["number"], moment_of(row["happened"]), decode_event(row["event"])) for row in rows]


def newest(sql: Sql, subject: str, limit: int, kind: str = "") -> list[StoredJobEvent]:
    """Return the last events of a job, at most `limit`, in order; with `kind`, such as `metric`, only those."""
    rows = sql.rows(
        "SELECT number, happened, event FROM training_events WHERE job_id = ? AND event LIKE ? "
        "ORDER BY number DESC LIMIT ?",
        subject,
        f'{{"kind":"{kind}"%' if kind else "%",
        limit,
    )
    return [
        StoredJobEvent(row["number"], moment_of(row["happened"]), decode_event(row["event"])) for row in reversed(rows)
    ]


def log(sql: Sql, subject: str, after: Cursor | None) -> tuple[list[StoredJobEvent], StoredJobEvent | None]:
    """Return a page of a job's events, oldest first, and the last one of the page if there may be more."""
    page = events_after(sql, subject, after[1] if after is not None else 0)
    return page, page[-1] if len(page) == PAGE else None


def expire(sql: Sql, now: datetime) -> int:
    """Delete events of jobs that ended more than LOGS ago, at most AT_ONCE; return how many."""
    return sql.run(
        """
        DELETE FROM training_events WHERE number IN (
            SELECT training_events.number FROM training_events
            JOIN training_jobs ON training_jobs.id = training_events.job_id
            WHERE training_jobs.ended < ? LIMIT ?
        )
        """,
        stored(now - LOGS),
        AT_ONCE,
    )
