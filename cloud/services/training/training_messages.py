"""Response messages of MLTrainingService, with the field names of the published ones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Final

from msgspec import Struct

from training.jobs.lifecycle import State
from training.jobs.submission import ModelType


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


STATUS_OF: Final[Mapping[State, TrainingStatus]] = {state: TrainingStatus[state.name] for state in State}


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
