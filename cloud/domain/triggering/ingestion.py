"""Trigger events of uploads, queued in the transaction that stores the data, so that none is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from cloud.domain.data.readings import NewReading
from cloud.domain.triggering.configured import DATA, listens
from cloud.domain.triggering.queue import enqueue
from cloud.store.sql import Sql
from cloud.values.times import moment_of, now
from triggers import Ingested, TabularReading

_NOT_FINITE: Final = re.compile("NaN|Infinity")  # as the text of a reading has such numbers, and JSON does not

__all__ = ["Ingestion", "ingested"]


@dataclass(frozen=True, slots=True)
class Ingestion:
    """One upload. `component_type` is the last segment of the API: `sensor`, `camera`."""

    part: str
    component_type: str
    component_name: str
    method: str
    data_type: str  # binary, tabular, file or unspecified
    file_id: str
    first: datetime  # when the machine, or else the cloud, received its earliest piece
    last: datetime
    readings: Sequence[NewReading] = ()
    alerts: bool = False  # a rule of alerts may be about it


def ingested(sql: Sql, what: Ingestion, at: datetime | None = None) -> None:
    """Queue an upload, received at `at` (default: now), if triggers of its part use data, or alerts use it."""
    if what.alerts or listens(sql, what.part, DATA):
        event = Ingested(
            what.component_type,
            what.component_name,
            what.method,
            what.data_type,
            what.file_id,
            what.first,
            what.last,
            tuple(map(_event, what.readings)),
        )
        enqueue(sql, what.part, event, at or now())


def _event(reading: NewReading) -> TabularReading:
    """Return a reading for the queue, where its text is copied unless JSON does not allow it."""
    requested, received, text = reading
    data: Any = json.loads(text) if _NOT_FINITE.search(text) else msgspec.Raw(text.encode())
    return TabularReading(moment_of(requested), moment_of(received), data)
