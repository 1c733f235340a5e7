"""The history of alerts: what has happened to each, kept for a while."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cloud.domain.alerts.life import Value
from cloud.store.sql import Sql
from cloud.store.sql import Value as Stored
from cloud.values.limits import ALERT_EVENTS
from cloud.values.times import moment_of, stored

RETENTION: Final = timedelta(days=90)
AT_ONCE: Final = 1000  # events that one transaction deletes
PAGE: Final = 50
MAX_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class AlertEvent:
    """Something that happened to an alert, with the names at that time. `detail` is who did it, or why it happened."""

    number: int
    alert: str
    rule_id: str
    rule: str
    part: str
    machine: str
    location: str
    source: str
    happened: datetime
    recorded: datetime
    kind: str
    value: Value
    detail: str


def events(sql: Sql, owner: str, *, alert: str = "", before: int | None = None, limit: int = PAGE) -> list[AlertEvent]:
    """Return events of an organization, or of one of its alerts, with numbers below `before`, newest first."""
    values: list[Stored] = [owner]
    conditions = ["organization_id = ?"]
    if alert:
        conditions.append("alert_id = ?")
        values.append(alert)
    if before is not None:
        conditions.append("number < ?")
        values.append(before)
    rows = sql.rows(
        f"SELECT * FROM alert_events WHERE {' AND '.join(conditions)} ORDER BY number DESC LIMIT ?",
        *values,
        max(1, min(limit, MAX_PAGE)),
    )
    return [_event(row) for row in rows]


def _event(row: Mapping[str, Any]) -> AlertEvent:
    return AlertEvent(
        row["number"],
        row["alert_id"],
        row["rule_id"],
        row["rule"],
        row["part_id"],
        row["machine"],
        row["location"],
        row["source"],
        moment_of(row["happened"]),
        moment_of(row["recorded"]),
        row["kind"],
        json.loads(row["value"]),
        row["detail"],
    )


def expire(sql: Sql, now: datetime) -> int:
    """Delete events older than RETENTION, and those of organizations with more than ALERT_EVENTS; return their number.

    At most AT_ONCE of each.
    """
    old = "SELECT number FROM alert_events WHERE recorded < ? ORDER BY recorded LIMIT ?"
    count = sql.run(f"DELETE FROM alert_events WHERE number IN ({old})", stored(now - RETENTION), AT_ONCE)
    for row in sql.rows("SELECT id FROM organizations"):
        last = sql.row(
            "SELECT number FROM alert_events WHERE organization_id = ? ORDER BY number DESC LIMIT 1 OFFSET ?",
            row["id"],
            ALERT_EVENTS.value,
        )
        if last is not None:
            surplus = (
                "SELECT number FROM alert_events WHERE organization_id = ? AND number <= ? ORDER BY number LIMIT ?"
            )
            count += sql.run(
                f"DELETE FROM alert_events WHERE number IN ({surplus})", row["id"], last["number"], AT_ONCE
            )
    return count
