"""Reports of completed jobs, and the pictures whose labels the newest model of a dataset contradicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from cloud.domain.training.jobs import JobRecord, record
from cloud.store.sql import Sql
from training.jobs import JobState, Report, encode_report, read_report

VERSIONS: Final = 20  # of a model that are compared


def keep(sql: Sql, job: JobRecord, report: Report) -> None:
    """Store the report of a job that completes now, and list its suspicious pictures in place of earlier ones."""
    sql.run("INSERT INTO training_reports (job_id, report) VALUES (?, ?)", job.id, encode_report(report))
    dataset = job.task.dataset_id
    sql.run("DELETE FROM dataset_suspects WHERE dataset_id = ?", dataset)
    sql.many(
        "INSERT INTO dataset_suspects (dataset_id, file_id, job_id, predicted, score) "
        "SELECT dataset_id, file_id, ?, ?, ? FROM dataset_files WHERE dataset_id = ? AND file_id = ?",
        [
            (job.id, json.dumps(mistake.predicted), mistake.score, dataset, mistake.id)
            for mistake in report.contradicted()
        ],
    )


def report(sql: Sql, job: str) -> Report | None:
    """Return the report of a job; None if it has none."""
    row = sql.row("SELECT report FROM training_reports WHERE job_id = ?", job)
    return None if row is None else read_report(row["report"].encode())


def exists(sql: Sql, job: str) -> bool:
    """Return whether a job has a report."""
    return sql.row("SELECT job_id FROM training_reports WHERE job_id = ?", job) is not None


def versions(sql: Sql, owner: str, model: str) -> list[tuple[JobRecord, Report | None]]:
    """Return the completed jobs of a model, newest first, at most VERSIONS, with their reports."""
    rows = sql.rows(
        "SELECT * FROM training_jobs WHERE organization_id = ? AND model_name = ? AND state = ? "
        "ORDER BY number DESC LIMIT ?",
        owner, model, JobState.COMPLETED.value, VERSIONS,
    )  # fmt: skip
    return [(record(row), report(sql, row["id"])) for row in rows]


def listed_files(sql: Sql, dataset: str, files: Sequence[str]) -> set[str]:
    """Return which of the files a dataset still contains."""
    marks = ", ".join("?" * len(files))
    rows = sql.rows(f"SELECT file_id FROM dataset_files WHERE dataset_id = ? AND file_id IN ({marks})", dataset, *files)
    return {row["file_id"] for row in rows}
