"""What an upload tells the triggers: noted in the very transaction that keeps the data, so that none is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cloud.store.sql import Sql


@dataclass(frozen=True, slots=True)
class Reading:
    """One tabular reading as it was uploaded; `data` with the wrapper `readings` where the machine sent one."""

    requested: datetime
    received: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ingestion:
    """One upload. `component_type` is the last segment of the API: `sensor`, `camera`."""

    part: str
    component_type: str
    component_name: str
    method: str
    data_type: str  # binary, tabular, file or unspecified
    file_id: str
    first: datetime  # when its earliest piece was received by the machine, else by the cloud
    last: datetime
    readings: tuple[Reading, ...] = ()


def ingested(sql: Sql, what: Ingestion) -> None:
    """Queue an upload for the triggers of its part, if it has any."""
