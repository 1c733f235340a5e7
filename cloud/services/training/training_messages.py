"""Response messages of MLTrainingService, with the field names of the published ones, and of TrainingService."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Final

from msgspec import Struct

from training.jobs import JobState, ModelType


class TrainingStatus(IntEnum):
    """State of a job."""

    UNSPECIFIED = 0
    PENDING = 1
    IN_PROGRESS = 2
    COMPLETED = 3
    FAILED = 4
    CANCELED = 5
    CANCELING = 6


class ModelFramework(IntEnum):
    """Format of a model."""

    UNSPECIFIED = 0
    TFLITE = 1
    TENSORFLOW = 2
    PYTORCH = 3
    ONNX = 4
    REGISTRY = 5


STATUS_OF: Final[Mapping[JobState, TrainingStatus]] = {state: TrainingStatus[state.name] for state in JobState}


class ErrorStatus(Struct, frozen=True):
    """Why a job failed: google.rpc.Status."""

    code: int
    message: str


class TrainingJobMetadata(Struct, frozen=True):
    """A job."""

    id: str
    dataset_id: str
    organization_id: str
    model_name: str
    model_version: str
    model_type: ModelType
    model_framework: ModelFramework
    is_custom_job: bool
    registry_item_id: str
    registry_item_version: str
    status: TrainingStatus
    created_on: datetime
    last_modified: datetime
    training_started: datetime | None
    training_ended: datetime | None
    synced_model_id: str
    tags: list[str]
    arguments: dict[str, str]
    container_version: str
    error_status: ErrorStatus | None = None


class TrainingJobLogEntry(Struct, frozen=True):
    """A line of a job's log."""

    level: str
    time: datetime
    message: str


class LogPage(Struct, frozen=True):
    """A page of a job's log."""

    logs: list[TrainingJobLogEntry]
    next_page_token: str


class Container(Struct, frozen=True):
    """An environment in which scripts run."""

    key: str
    uri: str
    framework: str
    description: str


class TrainingEvent(Struct, frozen=True):
    """An event of a job. `kind` is status, log, metric or progress, and the fields of the other kinds are empty."""

    number: int
    time: datetime
    kind: str
    status: str = ""
    reason: str = ""
    level: str = ""
    message: str = ""
    name: str = ""
    value: float = 0.0
    step: int = 0
    done: int = 0
    total: int = 0


class WaitForEventsResponse(Struct, frozen=True):
    """Events of a job, and its state after them; `ended`: no more will follow."""

    events: list[TrainingEvent]
    status: str
    reason: str
    ended: bool


class TrainingJob(Struct, frozen=True):
    """A job in a list, with the names that published messages use. `error` is the reason of a failure."""

    id: str
    dataset_id: str
    organization_id: str
    model_name: str
    model_version: str
    model_type: str
    tags: list[str]
    registry_item_id: str
    registry_item_version: str
    arguments: dict[str, str]
    status: str
    error: str
    created_on: datetime
    last_modified: datetime
    training_started: datetime | None
    training_ended: datetime | None
    synced_model_id: str


class ListJobsResponse(Struct, frozen=True):
    """A page of jobs, newest first. `next` is the `before` of the next page; 0 after the last one."""

    jobs: list[TrainingJob]
    next: int


class TrainingNotification(Struct, frozen=True):
    """Target of messages about ended jobs; `state`, `error` and `tried` are those of the newest message to it."""

    type: str
    value: str
    signed: bool
    state: str
    error: str
    tried: datetime | None
