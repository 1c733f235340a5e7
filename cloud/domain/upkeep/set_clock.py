"""Deadlines that a wrong clock of the cloud has set, and that would not come for years after it is corrected."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from cloud.domain.fleet import jobs as fleet_jobs
from cloud.domain.machines import listed
from cloud.domain.people import invites
from cloud.domain.training import jobs
from cloud.domain.triggering import deliveries
from cloud.store.sql import Sql
from cloud.values.times import stored
from triggers import MAX_WAIT

LONGEST: Final = timedelta(seconds=MAX_WAIT) + timedelta(hours=1)
"""No deadline of these tables is set for longer: the longest wait that a receiver can request, and some time."""

DEADLINES: Final[Sequence[tuple[str, str, str]]] = (
    ("deliveries", "due", deliveries.TOPIC),
    ("fleet_jobs", "lease", fleet_jobs.TOPIC),
    ("invites", "due", invites.TOPIC),
    ("live", "watched", "watched"),
    ("staged_machines", "due", listed.DUE),
    ("training_jobs", "lease", jobs.TOPIC),
)
"""Table and column of each deadline that is stored, and the topic of its listeners."""


def correct(sql: Sql, now: datetime) -> int:
    """Let deadlines that lie further ahead than they can have been set come now; return their number."""
    corrected = 0
    for table, column, topic in DEADLINES:
        count = sql.run(f"UPDATE {table} SET {column} = ? WHERE {column} > ?", stored(now), stored(now + LONGEST))
        if count:
            sql.notify(topic, "")
        corrected += count
    return corrected
