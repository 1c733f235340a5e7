"""What an upload tells the triggers: noted in the very transaction that keeps the data, so that none is lost."""

from __future__ import annotations

from datetime import datetime

from cloud.store.sql import Sql
from cloud.times import now
from cloud.triggering.configured import DATA, listens
from cloud.triggering.queue import Ingestion, Reading, enqueue

__all__ = ["Ingestion", "Reading", "ingested"]


def ingested(sql: Sql, what: Ingestion, at: datetime | None = None) -> None:
    """Queue an upload for the triggers of its part, if it has any that look at data. `at` is when it came: now."""
    if listens(sql, what.part, DATA):
        enqueue(sql, what.part, what, at or now())
