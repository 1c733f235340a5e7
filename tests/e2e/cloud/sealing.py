"""machine-cloud that seals readings at once, in small segments: `python -m tests.e2e.cloud.sealing OPTIONS`.

A retention period of a day is one of SHORT seconds, and looked at all the time.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from cloud.domain.data import retention
from cloud.domain.data.segments import sealing
from cloud.server import app, cli, segment_nodes
from cloud.store.sql import Sql

SHORT = 4.0


def expire(sql: Sql, now: datetime) -> int:
    return retention.expire(sql, now + timedelta(days=1, seconds=-SHORT))


def main() -> None:
    sealing.MOST, sealing.SOME = 20, 5
    sealing.WAIT, sealing.LONGEST = timedelta(0), timedelta(seconds=1)
    segment_nodes.PAUSE = 0.01
    app.HOUSEKEEPING, app.CHORES = 0.05, (("captured data", expire),)
    cli._seal_after = lambda hours, *, shared: timedelta(0) if hours else None
    cli.main()


if __name__ == "__main__":
    main()
