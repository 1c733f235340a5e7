"""viam.app.mltraining.v1.MLTrainingService: submission and control of training jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from cloud.domain.data.sources import checked
from cloud.domain.permissions import registry_access
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import allow, owner, signed_in
from cloud.domain.registry import files
from cloud.domain.training import jobs
from cloud.domain.training.abilities import CONTAINER
from cloud.domain.training.jobs import JobRecord, NewJob, StoredJobEvent
from cloud.domain.training.pictures import dataset_of, examples
from cloud.services.common.base import Service, guarded
from cloud.services.training import training_messages as m
from cloud.store.sql import Sql
from cloud.values.cursor import cursor, read_cursor
from cloud.values.limits import TRAINING_ARGUMENTS, TRAINING_LABELS
from schema import ErrorKind, MachineError
from training.jobs import (
    ExampleCounts,
    JobState,
    Log,
    Metric,
    ModelType,
    Progress,
    Status,
    check_examples,
    checked_labels,
)

UNKNOWN: Final = 2  # code of an error_status: google.rpc.Code.UNKNOWN
SCRIPT: Final = "ml_training"  # type of the registry items
_ARGUMENT: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_STATE_OF: Final = {status: state for state, status in m.STATUS_OF.items()}


@guarded
class MLTrainingService(Service):
    """A call of MLTrainingService. As published, all calls need an owner of the organization."""

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def submit_training_job(
        self,
        organization_id: str,
        dataset_id: str,
        model_name: str,
        model_type: ModelType = ModelType.UNSPECIFIED,
        model_version: str = "",
        model_framework: m.ModelFramework = m.ModelFramework.UNSPECIFIED,
        tags: Sequence[str] = (),
    ) -> str:
        """Queue the training of a model from a dataset and return the job's id. Without a version, it is the time."""
        # Before the ability of this cloud: an unknown dataset is NOT_FOUND everywhere.
        await self.read(lambda sql: dataset_of(sql, dataset_id, organization_id))
        self.cloud.training.check(model_type)
        if model_framework not in (m.ModelFramework.UNSPECIFIED, m.ModelFramework.ONNX):
            raise MachineError(
                f"this cloud trains no {model_framework.name.lower()} models",
                kind=ErrorKind.UNSUPPORTED,
                remedy="leave the framework out: the model is in ONNX format",
            )
        TRAINING_LABELS.check(len(tags), "the job")
        labels = checked_labels([checked(label, "a label") for label in tags], model_type)
        task = NewJob(organization_id, dataset_id, model_name, model_version or self._version(), model_type, labels)

        def read(sql: Sql) -> ExampleCounts:
            jobs.check_free(sql, organization_id, task.model_name, task.model_version)
            return examples(sql, dataset_id, organization_id, model_type, labels)

        check_examples(model_type, labels, await self.read(read))
        return await self.change(lambda sql: jobs.submit(sql, task, self.author, self.now()))

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def submit_custom_training_job(
        self,
        organization_id: str,
        dataset_id: str,
        registry_item_id: str,
        registry_item_version: str,
        model_name: str,
        model_version: str = "",
        arguments: Mapping[str, str] | None = None,
        container_version: str = "",
        container_id: str = "",
    ) -> str:
        """Queue a run of a training script from the registry and return the job's id."""
        await self.read(lambda sql: dataset_of(sql, dataset_id, organization_id))  # first, as above
        self.cloud.training.check_scripts()
        if container_id or container_version not in ("", CONTAINER):
            raise MachineError(
                "this cloud runs training scripts without containers",
                kind=ErrorKind.UNSUPPORTED,
                remedy=f"leave the container out, or name {CONTAINER!r}",
            )
        values = _checked_arguments(arguments or {})
        version = model_version or self._version()

        def work(sql: Sql) -> str:
            item = registry_access.find(sql, self.author, registry_item_id)
            if item.type != SCRIPT:
                raise MachineError(
                    f"{item.wire_id} has the type {item.type}, not {SCRIPT}",
                    kind=ErrorKind.INVALID,
                    remedy="name the registry entry of a training script",
                )
            script = files.best(files.files(sql, item.id), item, registry_item_version, "linux/any", ())
            if not examples(sql, dataset_id, organization_id, ModelType.UNSPECIFIED, ()).total:
                raise MachineError(
                    "the dataset has no pictures", kind=ErrorKind.PRECONDITION, remedy="add pictures to it"
                )
            task = NewJob(
                organization_id,
                dataset_id,
                model_name,
                version,
                script=item.wire_id,
                script_version=script.version,
                arguments=values,
            )
            return jobs.submit(sql, task, self.author, self.now())

        return await self.change(work)

    @allow(owner(ObjectKind.JOB, "id"))
    async def get_training_job(self, id: str) -> m.TrainingJobMetadata:  # noqa: A002 - field of the wire
        """Return a job."""
        return await self.read(lambda sql: _metadata(jobs.job(sql, id)))

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_training_jobs(
        self, organization_id: str, status: m.TrainingStatus = m.TrainingStatus.UNSPECIFIED
    ) -> list[m.TrainingJobMetadata]:
        """Return the jobs of an organization, newest first; with a status, only those in that state."""
        state = _STATE_OF.get(status)
        return await self.read(lambda sql: [_metadata(entry) for entry in jobs.jobs(sql, organization_id, state)])

    @allow(owner(ObjectKind.JOB, "id"))
    async def cancel_training_job(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Cancel a job that has not ended. A running one gets time to end, and is CANCELING meanwhile."""
        await self.change(lambda sql: jobs.cancel(sql, id, self.now()))

    @allow(owner(ObjectKind.JOB, "id"))
    async def delete_completed_training_job(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Delete a job that has ended, whether it succeeded or not, with its log. Its model stays in the registry."""
        await self.change(lambda sql: jobs.delete(sql, id))

    @allow(owner(ObjectKind.JOB, "id"))
    async def get_training_job_logs(
        self,
        id: str,  # noqa: A002 - field of the wire
        page_token: str | None = None,
    ) -> m.LogPage:
        """Return a page of a job's log, oldest entry first. Logs are kept for 7 days after the end of a job."""
        after = read_cursor(page_token) if page_token else None

        def work(sql: Sql) -> m.LogPage:
            page, last = jobs.log(sql, id, after)
            token = cursor(last.time, last.number) if last is not None else ""
            return m.LogPage([_entry(entry) for entry in page], token)

        return await self.read(work)

    @allow(signed_in("the environment of training scripts"))
    async def list_supported_containers(self) -> dict[str, m.Container]:
        """Return the environment of scripts, which are run without containers; empty if this cloud runs no scripts."""
        await self.read(lambda sql: None)
        return {container.key: container for container in self._containers()}

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_containers(self, organization_id: str) -> list[m.Container]:
        """Return the same environment as ListSupportedContainers."""
        return self._containers()

    def _containers(self) -> list[m.Container]:
        training = self.cloud.training
        if training.scripts:
            return []
        return [m.Container(CONTAINER, "", training.environment, "the Python environment of this cloud, no container")]

    def _version(self) -> str:
        return f"{self.now():%Y-%m-%dT%H-%M-%S}"


def _checked_arguments(arguments: Mapping[str, str]) -> dict[str, str]:
    TRAINING_ARGUMENTS.check(sum(len(name) + len(value) for name, value in arguments.items()), "the job")
    for name, value in arguments.items():
        if not _ARGUMENT.fullmatch(name) or "\0" in value:
            raise MachineError(
                f"{name[:40]!r} is not a valid argument of a training script",
                kind=ErrorKind.INVALID,
                remedy="use letters, digits, - and _ in names",
            )
    return dict(arguments)


def _metadata(entry: JobRecord) -> m.TrainingJobMetadata:
    task = entry.task
    custom = bool(task.script)
    return m.TrainingJobMetadata(
        id=entry.id,
        dataset_id=task.dataset_id,
        organization_id=task.organization_id,
        model_name=task.model_name,
        model_version=task.model_version,
        model_type=task.model_type,
        model_framework=m.ModelFramework.UNSPECIFIED if custom else m.ModelFramework.ONNX,
        is_custom_job=custom,
        registry_item_id=task.script,
        registry_item_version=task.script_version,
        status=m.STATUS_OF[entry.state],
        created_on=entry.created,
        last_modified=entry.changed,
        training_started=entry.started,
        training_ended=entry.ended,
        synced_model_id=entry.model,
        tags=list(task.labels),
        arguments=dict(task.arguments),
        container_version=CONTAINER if custom else "",
        error_status=m.ErrorStatus(UNKNOWN, entry.reason) if entry.state is JobState.FAILED else None,
    )


def _entry(happened: StoredJobEvent) -> m.TrainingJobLogEntry:
    match happened.event:
        case Log(text, level):
            return m.TrainingJobLogEntry(level, happened.time, text)
        case Metric(name, value, step):
            return m.TrainingJobLogEntry("info", happened.time, f"{name} {value:g} (step {step})")
        case Progress(done, total):
            return m.TrainingJobLogEntry("info", happened.time, f"{done} of {total} done")
        case Status(state, reason):
            text = f"the job is {state.value}" + (f": {reason}" if reason else "")
            return m.TrainingJobLogEntry("error" if state is JobState.FAILED else "info", happened.time, text)
