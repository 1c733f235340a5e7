"""Jobs on many machines in the database: each machine is done once, in the transaction that records its outcome.

The process that works on a job holds a lease, so that another one goes on after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from cloud.domain.fleet.work import Work
from cloud.domain.organizations.tenants import missing
from cloud.store.sql import Row, Sql, Value, inserted
from cloud.values.author import Author
from cloud.values.limits import FLEET_JOB_MACHINES, FLEET_JOBS, FLEET_QUEUE, FLEET_WORK
from cloud.values.names import new_id
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError

TOPIC: Final = "fleet job"
"""Topic of events about jobs; the subject is the job."""

LEASE: Final = timedelta(seconds=30)
"""Time without progress after which another process takes over."""

RUNNING: Final = "running"
DONE: Final = "done"
STOPPED: Final = "stopped"

WAITING: Final = "waiting"
CHANGED: Final = "changed"
UNCHANGED: Final = "unchanged"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
OUTCOMES: Final = (CHANGED, UNCHANGED, FAILED, SKIPPED)
"""Outcomes of machines, which are also columns with their numbers."""

_JOB: Final = (
    "SELECT id, organization_id, author_type, author, work, undo_of, state, total, changed, unchanged, failed, "
    "skipped, created, ended FROM fleet_jobs"
)


class Over(Exception):
    """The job was stopped, or another process has done the machine: nothing is to be done."""


@dataclass(frozen=True, slots=True)
class Job:
    """Work on machines, by the permission of `author`, with the number of machines that have each outcome."""

    id: str
    organization_id: str
    author: Author
    work: Work
    undo_of: str
    state: str
    total: int
    changed: int
    unchanged: int
    failed: int
    skipped: int
    created: datetime
    ended: datetime | None

    @property
    def finished(self) -> int:
        """The number of machines with an outcome."""
        return self.changed + self.unchanged + self.failed + self.skipped


@dataclass(frozen=True, slots=True)
class JobMachine:
    """A machine of a job. `plan` is what another job did, if this one undoes it; `effect` is what was done."""

    position: int
    machine: str
    name: str
    state: str
    reason: str
    plan: Mapping[str, Any]
    effect: Mapping[str, Any]
    ended: datetime | None


def start(
    sql: Sql,
    owner: str,
    author: Author,
    work: Work,
    machines: Sequence[tuple[str, str, Mapping[str, Any]]],
    now: datetime,
    undo_of: str = "",
) -> str:
    """Start a job on machines, each with id, name and plan; return its id. INVALID without machines, EXHAUSTED.

    The oldest jobs that have ended are deleted if there are too many.
    """
    if not machines:
        raise MachineError("no machine is selected", kind=ErrorKind.INVALID, remedy="select at least one machine")
    FLEET_JOB_MACHINES.check(len(machines), "the selection")
    encoded = msgspec.json.encode(work)
    FLEET_WORK.check(len(encoded), "the work")
    before = jobs(sql, owner)
    FLEET_QUEUE.check_count(sum(entry.state == RUNNING for entry in before), "the organization")
    ended = [entry for entry in before if entry.state != RUNNING]
    for entry in ended[max(0, FLEET_JOBS.value - 1 - (len(before) - len(ended))) :]:
        sql.run("DELETE FROM fleet_job_machines WHERE job_id = ?", entry.id)
        sql.run("DELETE FROM fleet_jobs WHERE id = ?", entry.id)
    subject = new_id()
    row: dict[str, Value] = {
        "id": subject,
        "organization_id": owner,
        "author_type": author.type,
        "author": author.name,
        "work": encoded.decode(),
        "undo_of": undo_of,
        "state": RUNNING,
        "total": len(machines),
        **dict.fromkeys(OUTCOMES, 0),
        "created": stored(now),
        "lease": 0,
    }
    inserted(sql, "fleet_jobs", row)
    sql.many(
        "INSERT INTO fleet_job_machines (job_id, position, machine_id, name, state, reason, plan, effect) "
        "VALUES (?, ?, ?, ?, ?, '', ?, '{}')",
        [
            (subject, position, machine, name, WAITING, msgspec.json.encode(plan).decode())
            for position, (machine, name, plan) in enumerate(machines, 1)
        ],
    )
    sql.notify(TOPIC, subject)
    return subject


def job(sql: Sql, subject: str) -> Job:
    """Return a job; NOT_FOUND."""
    row = sql.row(f"{_JOB} WHERE id = ?", subject)
    if row is None:
        raise missing("fleet job", subject)
    return _job(row)


def jobs(sql: Sql, owner: str) -> list[Job]:
    """Return the jobs of an organization, newest first; see the limit `fleet_jobs`."""
    return [_job(row) for row in sql.rows(f"{_JOB} WHERE organization_id = ? ORDER BY created DESC, id DESC", owner)]


def machines(sql: Sql, subject: str, state: str = "", after: int = 0, limit: int = 100) -> list[JobMachine]:
    """Return machines of a job after a position, in order; with `state`, those in it."""
    rows = sql.rows(
        "SELECT position, machine_id, name, state, reason, plan, effect, ended FROM fleet_job_machines "
        f"WHERE job_id = ? {'AND state = ?' if state else ''} AND position > ? ORDER BY position LIMIT ?",
        subject,
        *([state] if state else []),
        after,
        limit,
    )
    return [_machine(row) for row in rows]


def stop(sql: Sql, subject: str, now: datetime) -> None:
    """Stop a job: machines without an outcome are skipped. Nothing happens to a job that has ended."""
    before = job(sql, subject)
    if before.state != RUNNING:
        return
    skipped = sql.run(
        "UPDATE fleet_job_machines SET state = ?, reason = 'the job was stopped before', ended = ? "
        "WHERE job_id = ? AND state = ?",
        SKIPPED,
        stored(now),
        subject,
        WAITING,
    )
    sql.run(
        "UPDATE fleet_jobs SET state = ?, skipped = skipped + ?, ended = ? WHERE id = ?",
        STOPPED,
        skipped,
        stored(now),
        subject,
    )
    sql.notify(TOPIC, subject)


# ---- for the process that works on jobs


def claim(sql: Sql, now: datetime) -> Job | None:
    """Take the job that has waited longest; None if there is none."""
    row = sql.row(
        "SELECT id, lease FROM fleet_jobs WHERE state = 'running' AND lease <= ? ORDER BY lease LIMIT 1", stored(now)
    )
    if row is None:
        return None
    claimed = sql.run(
        "UPDATE fleet_jobs SET lease = ? WHERE id = ? AND lease = ? AND state = 'running'",
        stored(now + LEASE),
        row["id"],
        row["lease"],
    )
    return job(sql, row["id"]) if claimed else None


def release(sql: Sql, subject: str, now: datetime) -> None:
    """Leave a job to other processes, behind other jobs that wait."""
    sql.run("UPDATE fleet_jobs SET lease = ? WHERE id = ? AND state = ?", stored(now), subject, RUNNING)


def next_claim(sql: Sql) -> datetime | None:
    """Return when the next job can be taken; None if there is none."""
    row = sql.row("SELECT lease FROM fleet_jobs WHERE state = 'running' AND lease >= 0 ORDER BY lease LIMIT 1")
    return None if row is None else moment_of(row["lease"])


def conclude(
    sql: Sql, subject: str, position: int, state: str, now: datetime, *, reason: str = "", effect: Any = None
) -> None:
    """Record the outcome of a machine, in the transaction that does its work. Over if it must not be done."""
    if not sql.run(
        "UPDATE fleet_job_machines SET state = ?, reason = ?, effect = ?, ended = ? "
        "WHERE job_id = ? AND position = ? AND state = ?",
        state,
        reason[:500],
        msgspec.json.encode(effect or {}).decode(),
        stored(now),
        subject,
        position,
        WAITING,
    ) or not sql.run(
        f"UPDATE fleet_jobs SET {state} = {state} + 1, lease = ? WHERE id = ? AND state = ?",
        stored(now + LEASE),
        subject,
        RUNNING,
    ):
        raise Over
    entry = job(sql, subject)
    if entry.finished >= entry.total:
        sql.run("UPDATE fleet_jobs SET state = ?, ended = ? WHERE id = ?", DONE, stored(now), subject)
    sql.notify(TOPIC, subject)


def _job(row: Row) -> Job:
    return Job(
        row["id"],
        row["organization_id"],
        Author(row["author_type"], row["author"]),
        msgspec.json.decode(row["work"], type=Work),
        row["undo_of"],
        row["state"],
        row["total"],
        row["changed"],
        row["unchanged"],
        row["failed"],
        row["skipped"],
        moment_of(row["created"]),
        None if row["ended"] is None else moment_of(row["ended"]),
    )


def _machine(row: Row) -> JobMachine:
    return JobMachine(
        row["position"],
        row["machine_id"],
        row["name"],
        row["state"],
        row["reason"],
        msgspec.json.decode(row["plan"]),
        msgspec.json.decode(row["effect"]),
        None if row["ended"] is None else moment_of(row["ended"]),
    )
