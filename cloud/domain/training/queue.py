"""The queue of training jobs: which job runs next, and who runs it.

A worker holds a job by a lease that it renews. A worker that cannot renew in time stops the job before the lease ends,
and no other worker takes the job earlier, unless the first one is known to have ended, so a job never runs twice at
once. Whatever a worker writes is refused once it has lost the job.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from cloud.domain.training import jobs
from cloud.domain.training.jobs import JobRecord
from cloud.store.sql import Sql
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError
from training.jobs import RUNNING, JobEvent, JobHappening, JobState

LEASE: Final = timedelta(seconds=90)
RENEWAL: Final = timedelta(seconds=20)  # pause between two renewals
ATTEMPTS: Final = 3  # starts of one job, before it fails because its worker was lost each time
_RUNNING: Final = tuple(state.value for state in sorted(RUNNING))


class LostError(MachineError):
    """The worker does not hold the job any more."""

    kind = ErrorKind.PRECONDITION


def take(sql: Sql, worker: str, now: datetime) -> JobRecord | None:
    """Return the next job and give it to `worker`; None if no job waits.

    Organizations take turns: the one with the fewest running jobs is next, then the one whose last start was longest
    ago. Jobs of one organization start in the order of their submission.
    """
    sql.in_turn("training queue")
    waiting = sql.rows(
        "SELECT organization_id, MIN(number) AS number FROM training_jobs WHERE state = ? GROUP BY organization_id",
        JobState.PENDING.value,
    )
    if not waiting:
        return None
    running = {
        row["organization_id"]: row["count"]
        for row in sql.rows(
            "SELECT organization_id, COUNT(*) AS count FROM training_jobs WHERE state IN (?, ?) "
            "GROUP BY organization_id",
            *_RUNNING,
        )
    }

    def turn(owner: str, number: int) -> tuple[int, int, int]:
        row = sql.row("SELECT MAX(started) AS started FROM training_jobs WHERE organization_id = ?", owner)
        return running.get(owner, 0), (row["started"] or 0) if row is not None else 0, number

    number = min(turn(row["organization_id"], row["number"]) for row in waiting)[2]
    row = sql.row("SELECT id FROM training_jobs WHERE number = ?", number)
    assert row is not None
    subject = jobs.job(sql, row["id"])
    jobs.change(sql, subject, JobHappening.START, now)
    sql.run(
        "UPDATE training_jobs SET worker = ?, lease = ?, attempts = attempts + 1, started = COALESCE(started, ?) "
        "WHERE id = ?",
        worker,
        stored(now + LEASE),
        stored(now),
        subject.id,
    )
    return jobs.job(sql, subject.id)


def renew(sql: Sql, subject: str, worker: str, now: datetime) -> JobRecord:
    """Extend the lease of a job and return the job; LostError."""
    held = holds(sql, subject, worker)
    sql.run("UPDATE training_jobs SET lease = ? WHERE id = ?", stored(now + LEASE), subject)
    return held


def holds(sql: Sql, subject: str, worker: str) -> JobRecord:
    """Return a job that `worker` runs; LostError if it does not run it any more."""
    row = sql.row("SELECT * FROM training_jobs WHERE id = ?", subject)
    if row is None or row["worker"] != worker or row["state"] not in _RUNNING:
        raise LostError(f"the job {subject} was taken from its worker")
    return jobs.record(row)


def report(sql: Sql, subject: str, worker: str, events: Sequence[JobEvent], now: datetime) -> None:
    """Add events to a job that `worker` runs; LostError."""
    holds(sql, subject, worker)
    jobs.append(sql, subject, events, now)


def end(
    sql: Sql, subject: str, worker: str, happening: JobHappening, now: datetime, *, reason: str = "", model: str = ""
) -> JobState:
    """Record the end of a job that `worker` runs; LostError."""
    return jobs.change(sql, holds(sql, subject, worker), happening, now, reason=reason, model=model)


def give_back(sql: Sql, subject: str, worker: str, now: datetime) -> None:
    """Return a job to the queue, because its worker stops; this does not count as one of its attempts. LostError."""
    jobs.change(
        sql, holds(sql, subject, worker), JobHappening.LOSE, now, reason="the cloud stopped: it continues later"
    )
    sql.run("UPDATE training_jobs SET attempts = attempts - 1 WHERE id = ?", subject)


def recover(sql: Sql, now: datetime, ended: Collection[str] = ()) -> datetime | None:
    """Take jobs from workers whose lease has ended, and from those in `ended`, which are known to have ended.

    Such a job waits for another start, or fails if it had ATTEMPTS. Return when the next lease ends, None if no job
    runs.
    """
    rows = sql.rows("SELECT * FROM training_jobs WHERE state IN (?, ?) ORDER BY lease", *_RUNNING)
    lost_at = None
    for row in rows:
        if row["lease"] > stored(now) and row["worker"] not in ended:
            lost_at = lost_at or moment_of(row["lease"])
            continue
        subject = jobs.record(row)
        if subject.state is JobState.IN_PROGRESS and subject.attempts >= ATTEMPTS:
            reason = f"the cloud that ran it stopped without notice, {subject.attempts} times"
            jobs.change(sql, subject, JobHappening.FAIL, now, reason=reason)
        else:
            reason = "the cloud that ran it stopped without notice: it continues from its last checkpoint"
            jobs.change(sql, subject, JobHappening.LOSE, now, reason=reason)
    return lost_at
