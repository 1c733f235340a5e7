"""What an upload tells the triggers: noted in the very transaction that keeps the data, so that none is lost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cloud.store.sql import Sql
from cloud.times import now
from cloud.triggering.configured import DATA, listens
from cloud.triggering.queue import enqueue
from triggers.events import Ingested, Reading

__all__ = ["Ingestion", "Reading", "ingested"]


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


def ingested(sql: Sql, what: Ingestion, at: datetime | None = None) -> None:
    """Queue an upload for the triggers of its part, if it has any that look at data. `at` is when it came: now."""
    if listens(sql, what.part, DATA):
        event = Ingested(
            what.component_type,
            what.component_name,
            what.method,
            what.data_type,
            what.file_id,
            what.first,
            what.last,
            what.readings,
        )
        enqueue(sql, what.part, event, at or now())
