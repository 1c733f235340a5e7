"""What happens to a part, where it happens, and what it means for one trigger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from triggers.condition import Eval


@dataclass(frozen=True, slots=True)
class Reading:
    """One tabular reading as it was uploaded; `data` with the wrapper `readings` where the machine sent one."""

    requested: datetime
    received: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ingested:
    """One upload. `first` and `last` are when its earliest and latest piece were received."""

    component_type: str  # last segment of the API: sensor, camera
    component_name: str
    method: str
    data_type: str  # binary, tabular, file or unspecified
    file_id: str
    first: datetime
    last: datetime
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True)
class Presence:
    """A part came online or went offline."""

    online: bool


@dataclass(frozen=True, slots=True)
class LogLine:
    """One log entry."""

    time: datetime
    level: str  # error, warn, info
    logger: str
    message: str


@dataclass(frozen=True, slots=True)
class Logged:
    """What a part has logged since the last look, by level. The keys are error, warn and info."""

    entries: Mapping[str, tuple[LogLine, ...]]


Happening: TypeAlias = Ingested | Presence | Logged


@dataclass(frozen=True, slots=True)
class Where:
    """The part that something happened to, and what it belongs to."""

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
    """A trigger that was met by a happening: what its messages are made of."""

    trigger: str  # its name
    type: str  # of its event
    happening: Happening
    condition: tuple[Eval, ...] = ()  # all of them held
    reading: Reading | None = None  # the first that met the condition; of other data the first
    count: int = 0  # readings that met the condition, or log entries
    lines: tuple[LogLine, ...] = field(default=())  # log entries of the wanted levels, oldest first
