"""Calls of the training pages beyond the published API: what a dataset lacks, a job with its figures, models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cloud.domain.data import datasets
from cloud.domain.data.datasets import DatasetRecord
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import allow, owner
from cloud.domain.training import jobs, reports
from cloud.domain.training.jobs import JobRecord, StoredJobEvent
from cloud.domain.training.pictures import examples
from cloud.services.common.base import Service, guarded
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError
from training.jobs import ExampleCounts, ModelType, Report, check_examples, checked_labels

METRICS: Final = 2000  # newest metrics of a job that are drawn
LINES: Final = 200  # log lines that a page begins with


@dataclass(frozen=True, slots=True)
class SeenJob:
    """A job with its newest events. `dataset` is the name, empty if the dataset was deleted."""

    job: JobRecord
    dataset: str
    progress: StoredJobEvent | None
    since: StoredJobEvent | None  # the last change of its state
    metrics: list[StoredJobEvent]
    reported: bool


@dataclass(frozen=True, slots=True)
class ReportedJob:
    """A job with its report, and which of the pictures that the report shows are still in the dataset."""

    job: JobRecord
    report: Report | None
    present: set[str]


@guarded
class TrainingPageService(Service):
    """A call of a training page, for owners, as for the published calls."""

    @allow(owner(ObjectKind.ORGANIZATION, "organization"))
    async def jobs(self, organization: str, before: int, limit: int) -> list[JobRecord]:
        """Return jobs with lower numbers than `before` (0: all), newest first."""
        return await self.read(lambda sql: jobs.page(sql, organization, None, before, limit))

    @allow(owner(ObjectKind.DATASET, "dataset"))
    async def examination(self, dataset: str, model_type: ModelType, labels: Sequence[str]) -> MachineError | None:
        """Return the error with which a job would be refused now, None if it would be accepted."""
        try:
            self.cloud.training.check(model_type)
            checked = checked_labels(labels, model_type)

            def work(sql: Sql) -> ExampleCounts:
                owner = datasets.dataset(sql, dataset).organization_id
                return examples(sql, dataset, owner, model_type, checked)

            check_examples(model_type, checked, await self.read(work))
        except MachineError as error:
            if error.kind in (ErrorKind.NOT_FOUND, ErrorKind.UNAUTHENTICATED, ErrorKind.PERMISSION):
                raise
            return error
        return None

    @allow(owner(ObjectKind.ORGANIZATION, "organization"))
    async def next_version(self, organization: str, model: str) -> str:
        """Return a version of a model that is probably free: the number of its jobs and one."""
        return str(1 + await self.read(lambda sql: jobs.count_of_model(sql, organization, model)))

    @allow(owner(ObjectKind.JOB, "id"))
    async def seen_job(self, id: str) -> SeenJob:  # noqa: A002 - the field of the published calls
        """Return a job."""

        def work(sql: Sql) -> SeenJob:
            job = jobs.job(sql, id)
            progress, status = jobs.newest(sql, id, 1, "progress"), jobs.newest(sql, id, 1, "status")
            dataset = _dataset(sql, job)
            return SeenJob(
                job,
                dataset.name if dataset is not None else "",
                progress[0] if progress else None,
                status[0] if status else None,
                jobs.newest(sql, id, METRICS, "metric"),
                reports.exists(sql, id),
            )

        return await self.read(work)

    @allow(owner(ObjectKind.JOB, "id"))
    async def events(self, id: str, after: int | None) -> list[StoredJobEvent]:  # noqa: A002 - as above
        """Return the events of a job with higher numbers than `after`; with None, the newest ones."""
        return await self.read(
            lambda sql: jobs.newest(sql, id, LINES) if after is None else jobs.events_after(sql, id, after)
        )

    @allow(owner(ObjectKind.JOB, "id"))
    async def report(self, id: str) -> ReportedJob:  # noqa: A002 - as above
        """Return the report of a job."""

        def work(sql: Sql) -> ReportedJob:
            job, report = jobs.job(sql, id), reports.report(sql, id)
            shown = [
                mistake.id
                for figures in ((report.test, report.cross_validation) if report is not None else ())
                for mistake in figures.worst_mistakes[: jobs.PAGE]
            ]
            return ReportedJob(job, report, reports.listed_files(sql, job.task.dataset_id, shown) if shown else set())

        return await self.read(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization"))
    async def versions(self, organization: str, model: str) -> list[tuple[JobRecord, Report | None]]:
        """Return the trained versions of a model, newest first, with their reports."""
        return await self.read(lambda sql: reports.versions(sql, organization, model))


def _dataset(sql: Sql, job: JobRecord) -> DatasetRecord | None:
    try:
        return datasets.dataset(sql, job.task.dataset_id)
    except MachineError:
        return None
