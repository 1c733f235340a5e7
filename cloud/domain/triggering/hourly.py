"""Hourly check of machine logs for triggers on log entries."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import trio

from cloud.domain.machines import logs
from cloud.domain.triggering.configured import LOGS, listens
from cloud.domain.triggering.queue import enqueue
from cloud.store.sql import Sql, Store
from cloud.values.times import Clock, moment_of, stored
from triggers import Logged, LogLine

INTERVAL: Final = timedelta(hours=1)
LINES: Final = 100
"""Maximum number of entries of one level in a message: the newest ones."""
SETTLED: Final = timedelta(minutes=1)
"""Age that entries must have to be checked.

Of two entries that arrive together, the one with the lower number may be committed last, and must not be skipped.
"""
OWN: Final = "app.trigger."
"""Prefix of the loggers of triggers. Their entries are ignored, or a trigger would report its own failures forever."""

_SETTING: Final = "trigger logs"
_LEVELS: Final = ("error", "warn", "info")


@dataclass(frozen=True, slots=True)
class LastCheck:
    """Position of the last check: the number of the last log entry that it covered, and its time."""

    number: int
    at: datetime


def last_check(sql: Sql) -> LastCheck | None:
    """Return the last check; None before the first one."""
    row = sql.row("SELECT value FROM settings WHERE name = ?", _SETTING)
    if row is None:
        return None
    stored_value = json.loads(row["value"])
    return LastCheck(stored_value["number"], moment_of(stored_value["at"]))


def check(sql: Sql, now: datetime) -> datetime:
    """Queue what was logged since the last check if an hour has passed; return when the next check is due."""
    previous = last_check(sql)
    newest = logs.newest(sql) if previous is None else max(previous.number, logs.newest(sql, now - SETTLED))
    value = json.dumps({"number": newest, "at": stored(now)})
    if previous is None:
        sql.run("INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", _SETTING, value)
        return now + INTERVAL
    if previous.at <= now < previous.at + INTERVAL:
        return previous.at + INTERVAL
    sql.run("UPDATE settings SET value = ? WHERE name = ?", value, _SETTING)
    marks = ", ".join("?" * len(_LEVELS))
    rows = sql.rows(
        f"""
        SELECT DISTINCT part_id FROM log_entries
        WHERE number > ? AND number <= ? AND level IN ({marks}) AND lower(logger) NOT LIKE ?
        """,
        previous.number,
        newest,
        *_LEVELS,
        f"{OWN}%",
    )
    for row in rows:
        if listens(sql, row["part_id"], LOGS):
            enqueue(sql, row["part_id"], _logged(sql, row["part_id"], previous.number, newest), now)
    return now + INTERVAL


def _logged(sql: Sql, part: str, after: int, until: int) -> Logged:
    lines_by_level = {}
    for level in _LEVELS:
        rows = sql.rows(
            """
            SELECT COALESCE(stated, logged) AS logged, logger, message FROM log_entries
            WHERE part_id = ? AND number > ? AND number <= ? AND level = ? AND lower(logger) NOT LIKE ?
            ORDER BY number DESC LIMIT ?
            """,
            part,
            after,
            until,
            level,
            f"{OWN}%",
            LINES,
        )
        lines_by_level[level] = tuple(
            LogLine(moment_of(row["logged"]), level, row["logger"], row["message"]) for row in reversed(rows)
        )
    return Logged({level: lines for level, lines in lines_by_level.items() if lines})


async def watch(store: Store, clock: Clock, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Check every hour until cancelled, also across restarts. Run it once in each process; they share the checks."""
    task_status.started()
    while True:
        now = clock()
        due = await store.write(lambda sql, at=now: check(sql, at))  # type: ignore[misc]
        await trio.sleep(max(0.0, (due - clock()).total_seconds()))
