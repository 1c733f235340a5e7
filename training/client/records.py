"""What the cloud returns about training jobs, as records. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from training.jobs.events import JobEvent, Log, Metric, Progress, Status
from training.jobs.lifecycle import FINAL, JobState
from training.jobs.submission import ModelType


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A job as it was at the time of the call. Times are in UTC.

    `model` is the package that a completed job has made, `error` the reason of a failure. `script` and `arguments` are
    those of a custom job.
    """

    id: str
    organization_id: str
    dataset_id: str
    model_name: str
    model_version: str
    model_type: ModelType
    tags: tuple[str, ...]
    state: JobState
    error: str
    model: str
    created: datetime
    changed: datetime
    started: datetime | None = None
    ended: datetime | None = None
    script: str = ""
    script_version: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)

    @property
    def final(self) -> bool:
        """Whether the job has ended."""
        return self.state in FINAL


@dataclass(frozen=True, slots=True)
class Numbered:
    """An event with its time, and its number within the job: pass it as `after` to continue behind the event."""

    number: int
    time: datetime
    event: JobEvent


def job_of(fields: Mapping[str, Any]) -> TrainingJob:
    """Return the job in a reply: the published message, or the one of `machine.cloud.v1`, whose names are the same."""
    status = fields.get("error_status") or {}
    return TrainingJob(
        id=fields["id"],
        organization_id=fields["organization_id"],
        dataset_id=fields["dataset_id"],
        model_name=fields["model_name"],
        model_version=fields["model_version"],
        model_type=ModelType[fields["model_type"]],
        tags=tuple(fields["tags"]),
        state=JobState[fields["status"]],
        error=fields.get("error") or status.get("message", ""),
        model=fields["synced_model_id"],
        created=fields["created_on"],
        changed=fields["last_modified"],
        started=fields.get("training_started"),
        ended=fields.get("training_ended"),
        script=fields["registry_item_id"],
        script_version=fields["registry_item_version"],
        arguments=dict(fields["arguments"]),
    )


def event_of(fields: Mapping[str, Any]) -> Numbered | None:
    """Return the event in a reply; None for a kind that this version of the client does not have."""
    event: JobEvent
    match fields["kind"]:
        case "status":
            event = Status(JobState[fields["status"]], fields["reason"])
        case "log":
            event = Log(fields["message"], fields["level"])
        case "metric":
            event = Metric(fields["name"], fields["value"], fields["step"])
        case "progress":
            event = Progress(fields["done"], fields["total"])
        case _:
            return None
    return Numbered(fields["number"], fields["time"], event)


@dataclass(frozen=True, slots=True)
class EventsPage:
    """Events of a job. `last` is the number to continue behind, `ended` says that no more events will follow."""

    events: list[Numbered]
    last: int
    state: JobState
    reason: str
    ended: bool
