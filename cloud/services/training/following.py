"""machine.cloud.v1.TrainingService: events of jobs as they happen, lists of jobs in pages, and notifications."""

from __future__ import annotations

from typing import Final

import trio

from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import allow, owner
from cloud.domain.training import jobs
from cloud.domain.training.jobs import JobRecord, StoredJobEvent
from cloud.domain.triggering import training_targets as targets
from cloud.services.common.base import Service, guarded
from cloud.services.common.standing import while_allowed
from cloud.services.training import training_messages as m
from cloud.store.sql import Sql
from cloud.work.openings import STREAMS
from schema import ErrorKind, MachineError
from training.jobs import FINAL, JobState, Log, Metric, Progress, Status

MAX_WAIT: Final = 20  # seconds that one call waits for an event; proxies allow more
MAX_JOBS: Final = 200  # jobs in a page


@guarded
class TrainingService(Service):
    """A call of machine.cloud.v1.TrainingService."""

    @allow(owner(ObjectKind.JOB, "id"))
    async def wait_for_events(
        self,
        id: str,  # noqa: A002 - field of the published calls
        after: int = 0,
        limit: int = 0,
        wait: int = 0,
    ) -> m.WaitForEventsResponse:
        """Return the events of a job with higher numbers than `after`, in order, at most `limit` (500, also for 0).

        If there are none and the job has not ended, wait for one for up to `wait` seconds (at most 20). A reader that
        passes the number of the last event that it has processed misses none and gets none twice. `ended` means that no
        more events will follow those returned.
        """
        if after < 0 or limit < 0 or wait < 0:
            raise MachineError(
                f"after ({after}), limit ({limit}) and wait ({wait}) must not be negative", kind=ErrorKind.INVALID
            )
        most = min(limit or jobs.PAGE, jobs.PAGE)

        def work(sql: Sql) -> tuple[JobRecord, list[StoredJobEvent]]:
            return jobs.job(sql, id), jobs.events_after(sql, id, after, most)

        with (
            self.cloud.openings.hold(f"the key {self.author.name}", STREAMS),
            self.cloud.events.listening(jobs.EVENTS, id, also=[jobs.TOPIC]) as news,
        ):
            job, page = await self.read(work)
            with trio.move_on_after(min(wait, MAX_WAIT)):
                with while_allowed(self.cloud, self.author, self.again):
                    while not page and job.state not in FINAL and not self.cloud.openings.closing:
                        await news.next()
                        if not self.cloud.openings.closing:
                            job, page = await self.read(work)
        ended = job.state in FINAL and len(page) < most
        return m.WaitForEventsResponse([_event(entry) for entry in page], job.state.name, job.reason, ended)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_jobs(
        self, organization_id: str, status: str = "", before: int = 0, limit: int = 0
    ) -> m.ListJobsResponse:
        """Return a page of the jobs of an organization, newest first, at most `limit` (200, also for 0).

        `status` selects those in one state, such as COMPLETED. `before` is the `next` of the page before; 0 for the
        first page. `next` is 0 after the last page.
        """
        if before < 0 or limit < 0:
            raise MachineError(f"before ({before}) and limit ({limit}) must not be negative", kind=ErrorKind.INVALID)
        states = {state.name: state for state in JobState}
        if status and status not in states:
            raise MachineError(
                f"there is no status {status[:40]!r}", kind=ErrorKind.INVALID, remedy=f"use one of {', '.join(states)}"
            )
        most = min(limit or MAX_JOBS, MAX_JOBS)

        def work(sql: Sql) -> list[JobRecord]:
            return jobs.page(sql, organization_id, states.get(status), before, most)

        page = await self.read(work)
        return m.ListJobsResponse([_job(entry) for entry in page], page[-1].number if len(page) == most else 0)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_notifications(self, organization_id: str) -> list[m.TrainingNotification]:
        """Return who is notified when a job of the organization has ended, with the last attempt for each target."""
        return [_notification(used) for used in await self.read(lambda sql: targets.used(sql, organization_id))]

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def add_notification(self, organization_id: str, type: str, value: str, secret: str = "") -> None:  # noqa: A002 - field of the call
        """Notify a webhook or an email address whenever a job of the organization has ended.

        `type` is `webhook` or `email`, `value` the URL or address. `secret` (`whsec_` and base64) signs webhooks and is
        never returned; a target that exists gets it.
        """
        await self.change(
            lambda sql: targets.add(sql, organization_id, type, value.strip(), secret.strip(), self.cloud.clock())
        )

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def remove_notification(self, organization_id: str, type: str, value: str) -> None:  # noqa: A002 - field of the call
        """Notify a target no more."""
        await self.change(lambda sql: targets.remove(sql, organization_id, type, value))


def _notification(used: targets.Used) -> m.TrainingNotification:
    target, attempt = used.target, used.attempt
    return m.TrainingNotification(
        type=target.type,
        value=target.value,
        signed=bool(target.secret),
        state=used.delivery.state.value if used.delivery is not None else "",
        error=attempt.error if attempt is not None else "",
        tried=attempt.started if attempt is not None else None,
    )


def _event(happened: StoredJobEvent) -> m.TrainingEvent:
    number, time = happened.number, happened.time
    match happened.event:
        case Log(text, level):
            return m.TrainingEvent(number, time, "log", level=level, message=text)
        case Metric(name, value, step):
            return m.TrainingEvent(number, time, "metric", name=name, value=value, step=step)
        case Progress(done, total):
            return m.TrainingEvent(number, time, "progress", done=done, total=total)
        case Status(state, reason):
            return m.TrainingEvent(number, time, "status", status=state.name, reason=reason)


def _job(entry: JobRecord) -> m.TrainingJob:
    task = entry.task
    return m.TrainingJob(
        id=entry.id,
        dataset_id=task.dataset_id,
        organization_id=task.organization_id,
        model_name=task.model_name,
        model_version=task.model_version,
        model_type=task.model_type.name,
        tags=list(task.labels),
        registry_item_id=task.script,
        registry_item_version=task.script_version,
        arguments=dict(task.arguments),
        status=entry.state.name,
        error=entry.reason,
        created_on=entry.created,
        last_modified=entry.changed,
        training_started=entry.started,
        training_ended=entry.ended,
        synced_model_id=entry.model,
    )
