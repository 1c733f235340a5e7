"""Events of a part, their location, and the firing of a trigger. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from triggers.condition import Eval


@dataclass(frozen=True, slots=True)
class TabularReading:
    """Tabular reading as uploaded; `data` includes the wrapper `readings` if the machine sent it."""

    requested: datetime
    received: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ingested:
    """Data upload. `first` and `last` are the times at which its first and last pieces were received."""

    component_type: str  # last segment of the API: sensor, camera
    component_name: str
    method: str
    data_type: str  # binary, tabular, file or unspecified
    file_id: str
    first: datetime
    last: datetime
    readings: tuple[TabularReading, ...] = ()


@dataclass(frozen=True, slots=True)
class Presence:
    """Event of a part that came online or went offline."""

    online: bool


@dataclass(frozen=True, slots=True)
class LogLine:
    """Log entry of a part."""

    time: datetime
    level: str  # error, warn, info
    logger: str
    message: str


@dataclass(frozen=True, slots=True)
class Logged:
    """Log entries of a part since the last evaluation, by level: error, warn and info."""

    entries: Mapping[str, tuple[LogLine, ...]]


@dataclass(frozen=True, slots=True)
class TrainingEnded:
    """A training job of an organization ended. `state` is completed, failed or canceled, `error` explains a failure.

    `package` is the registry entry of the model that a completed job has made.
    """

    job_id: str
    state: str
    error: str
    model_name: str
    model_version: str
    model_type: str
    package: str
    dataset_id: str
    created: datetime
    started: datetime | None
    ended: datetime


TriggerEvent: TypeAlias = Ingested | Presence | Logged
"""Events of a part, which its triggers select."""


@dataclass(frozen=True, slots=True)
class Where:
    """Part of an event, with its machine, location and organization."""

    organization_id: str
    organization_name: str
    location_id: str
    location_name: str
    machine_id: str
    machine_name: str
    part_id: str
    part_name: str


@dataclass(frozen=True, slots=True)
class Firing:
    """Firing of a trigger: the data from which its messages are created."""

    trigger: str  # name of the trigger
    type: str  # type of the trigger's event
    happening: TriggerEvent
    condition: tuple[Eval, ...] = ()  # evals, all of which held
    reading: TabularReading | None = None  # first reading that met the condition; without conditions, the first reading
    count: int = 0  # number of readings that met the condition, or of log entries
    lines: tuple[LogLine, ...] = field(default=())  # log entries of the trigger's levels, oldest first
