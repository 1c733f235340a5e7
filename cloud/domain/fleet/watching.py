"""Live view of a machine: viewers announce themselves, and the machine reports its state while there are any.

This uses the database, so that the page and the machine may be connected to different replicas.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cloud.store.sql import Sql
from cloud.values.times import moment_of, stored

WATCHED: Final = timedelta(seconds=30)  # how long an announcement lasts unless it is renewed
RENEWED: Final = timedelta(seconds=10)  # how often a page renews it
FORGOTTEN: Final = timedelta(
    days=1
)  # after the last view; until then the page of an offline machine shows the snapshot


@dataclass(frozen=True, slots=True)
class LiveSnapshot:
    """The newest snapshot of a part, and its time of arrival."""

    at: datetime
    snapshot: Mapping[str, Any]


def watch(sql: Sql, part: str, now: datetime) -> None:
    """Announce a viewer of a part, for WATCHED from now on."""
    sql.run(
        """
        INSERT INTO live (part_id, watched) VALUES (?, ?)
        ON CONFLICT (part_id) DO UPDATE SET watched = excluded.watched WHERE live.watched < excluded.watched
        """,
        part,
        stored(now + WATCHED),
    )
    sql.notify("watched", part)


def watched(sql: Sql, part: str, now: datetime) -> float:
    """Return for how many more seconds the part has viewers; 0 if it has none."""
    row = sql.row("SELECT watched FROM live WHERE part_id = ?", part)
    return max(0.0, (moment_of(row["watched"]) - now).total_seconds()) if row is not None else 0.0


def store_snapshot(sql: Sql, part: str, snapshot: Mapping[str, Any], now: datetime) -> bool:
    """Store the snapshot of a part if it has viewers; return whether it has."""
    text = json.dumps(snapshot, ensure_ascii=False, separators=(",", ":"))
    moment = stored(now)
    has_viewers = sql.run(
        "UPDATE live SET told = ?, snapshot = ? WHERE part_id = ? AND watched >= ?", moment, text, part, moment
    )
    if has_viewers:
        sql.notify("live", part)
    return bool(has_viewers)


def latest_snapshot(sql: Sql, part: str) -> LiveSnapshot | None:
    """Return the newest snapshot of a part; None if there is no recent one."""
    row = sql.row("SELECT told, snapshot FROM live WHERE part_id = ? AND told IS NOT NULL", part)
    return LiveSnapshot(moment_of(row["told"]), json.loads(row["snapshot"])) if row is not None else None


def expire(sql: Sql, now: datetime) -> int:
    """Delete snapshots that had no viewers for FORGOTTEN; return their number."""
    return sql.run("DELETE FROM live WHERE watched < ?", stored(now - FORGOTTEN))
