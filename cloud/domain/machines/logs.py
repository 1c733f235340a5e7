"""Log entries of machines, kept for 30 days."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from cloud.domain.machines import log_counts
from cloud.store.sql import Sql, Value, literal
from cloud.values.cursor import Cursor
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError

RETENTION: Final = log_counts.KEPT
MAX_BATCH: Final = 1000  # entries in one call, as in the published API
AT_ONCE: Final = 5000  # entries that one transaction deletes; other writers wait in the meantime
PAGE: Final = 100
MAX_PAGE: Final = 1000
_CONTAINS: Final = "lower({}) LIKE lower(?) ESCAPE '!'"
MAX_TEXT: Final = 64 * 1024  # characters in a message or stack; the rest is cut off, with a note


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One entry. `number` increases in the order of arrival; 0 if it is not stored yet.

    `time` is what the machine stated, and may be in the future if its clock is wrong. Entries are ordered by
    `position`.
    """

    time: datetime
    level: str
    logger: str
    message: str
    host: str = ""
    caller: Mapping[str, Any] | None = None
    stack: str = ""
    fields: tuple[Mapping[str, Any], ...] = ()
    number: int = 0
    received: datetime | None = None  # when it was stored; None if it is not

    @property
    def position(self) -> datetime:
        """The time by which entries are ordered and searched: `time`, but not after it was received."""
        return self.time if self.received is None else min(self.time, self.received)


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Filter for entries; all conditions must match. `after` is the end of the previous page.

    `start` and `end` are compared with the position of an entry.
    """

    levels: tuple[str, ...] = ()
    contains: str = ""
    start: datetime | None = None
    end: datetime | None = None
    source: str = ""
    ascending: bool = False
    after: Cursor | None = None
    limit: int = PAGE


def append(sql: Sql, part: str, entries: Iterable[LogRecord], now: datetime) -> None:
    """Store entries of a part; INVALID for more than MAX_BATCH.

    A machine that received no confirmation sends a batch again, beginning with the same entry and perhaps longer.
    Entries that are already stored are not stored again.
    """
    received = stored(now)
    rows = [
        (
            part,
            min(stored(entry.time), received),
            received,
            stored(entry.time) if stored(entry.time) > received else None,
            entry.host,
            entry.level.lower(),
            entry.logger,
            _cut(entry.message),
            json.dumps(entry.caller, sort_keys=True) if entry.caller else "{}",
            _cut(entry.stack),
            json.dumps(entry.fields, sort_keys=True) if entry.fields else "[]",
        )
        for entry in entries
    ]
    if len(rows) > MAX_BATCH:
        raise MachineError(
            f"{len(rows)} log entries in one call", kind=ErrorKind.INVALID, remedy=f"send at most {MAX_BATCH}"
        )
    sql.in_turn(part)
    new = _without_repeated(sql, rows)
    sql.many(
        """
        INSERT INTO log_entries (part_id, logged, received, stated, host, level, logger, message, caller, stack, fields)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        new,
    )
    log_counts.add(sql, part, [(int(str(row[1])), str(row[5])) for row in new], now)
    sql.notify("logs", part)


_SAME: Final = ("host", "level", "logger", "message", "caller", "stack", "fields")


def _without_repeated(sql: Sql, rows: Sequence[tuple[Value, ...]]) -> Sequence[tuple[Value, ...]]:
    """Return the rows that are not stored yet, for a batch whose first row is stored already; else all rows."""
    if not rows:
        return rows
    part, time, *other_values = rows[0][0], *_identity(rows[0])
    first_stored = sql.row(
        f"""
        SELECT MIN(number) AS number FROM log_entries
        WHERE part_id = ? AND (stated = ? OR (logged = ? AND stated IS NULL)) AND {" = ? AND ".join(_SAME)} = ?
        """,
        part,
        time,
        time,
        *other_values,
    )
    if first_stored is None or first_stored["number"] is None:
        return rows
    stored_rows = sql.rows(
        "SELECT * FROM log_entries WHERE part_id = ? AND number >= ? ORDER BY number LIMIT ?",
        part,
        first_stored["number"],
        2 * MAX_BATCH,  # other writers may have added entries in between
    )
    stored_counts = Counter((_stated(row), *(row[name] for name in _SAME)) for row in stored_rows)
    new = []
    for row in rows:
        identity = _identity(row)
        if stored_counts[identity]:
            stored_counts[identity] -= 1
        else:
            new.append(row)
    return new


def _identity(row: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return what is the same if a machine sends an entry again: without the time at which it is received."""
    _, logged, _, stated, *other_values = row
    return (logged if stated is None else stated, *other_values)


def _stated(row: Mapping[str, Any]) -> int:
    number: int = row["logged"] if row["stated"] is None else row["stated"]
    return number


def query(sql: Sql, part: str, log_query: LogQuery) -> list[LogRecord]:
    """Return matching entries of a part in order of position, newest first unless `ascending`."""
    conditions, values = _conditions(log_query)
    order = "ASC" if log_query.ascending else "DESC"
    rows = sql.rows(
        f"SELECT * FROM log_entries WHERE part_id = ?{conditions} ORDER BY logged {order}, number {order} LIMIT ?",
        part,
        *values,
        max(1, min(log_query.limit, MAX_PAGE)),
    )
    return [_record(row) for row in rows]


def within(sql: Sql, parts: Sequence[str], start: int, end: int, log_query: LogQuery) -> list[tuple[str, LogRecord]]:
    """Return matching entries of parts from stored time `start` to before `end`, newest first, each with its part."""
    conditions, values = _conditions(replace(log_query, ascending=False))
    rows = sql.rows(
        f"SELECT * FROM log_entries WHERE part_id IN ({', '.join('?' * len(parts))}) AND logged >= ? AND logged < ?"
        f"{conditions} ORDER BY logged DESC, number DESC LIMIT ?",
        *parts,
        start,
        end,
        *values,
        max(1, min(log_query.limit, MAX_PAGE)),
    )
    return [(row["part_id"], _record(row)) for row in rows]


def _conditions(log_query: LogQuery) -> tuple[str, list[str | int]]:
    """Return the SQL of a filter, which begins with AND unless it is empty, and its parameters."""
    conditions: list[str] = []
    values: list[str | int] = []
    if log_query.levels:
        conditions.append(f"level IN ({', '.join('?' * len(log_query.levels))})")
        values += [level.lower() for level in log_query.levels]
    if log_query.contains:
        conditions.append(f"({' OR '.join(map(_CONTAINS.format, ('message', 'logger', 'fields')))})")
        values += [f"%{literal(log_query.contains)}%"] * 3
    if log_query.source:
        conditions.append(_CONTAINS.format("logger"))
        values.append(f"%{literal(log_query.source)}%")
    if log_query.start is not None:
        conditions.append("logged >= ?")
        values.append(stored(log_query.start))
    if log_query.end is not None:
        conditions.append("logged < ?")
        values.append(stored(log_query.end))
    if log_query.after is not None:
        conditions.append(f"(logged, number) {'>' if log_query.ascending else '<'} (?, ?)")
        values += log_query.after
    return "".join(f" AND {condition}" for condition in conditions), values


def around(sql: Sql, part: str, number: int, each: int) -> list[LogRecord]:
    """Return the entry with a number between up to `each` earlier and later ones, newest first. NOT_FOUND."""
    row = sql.row("SELECT logged, number FROM log_entries WHERE number = ? AND part_id = ?", number, part)
    if row is None:
        raise MachineError(
            f"there is no log line {number}",
            kind=ErrorKind.NOT_FOUND,
            remedy=f"lines are kept for {RETENTION.days} days: open the newest ones",
        )
    cursor = (row["logged"], row["number"])
    later = query(sql, part, LogQuery(after=cursor, ascending=True, limit=each))
    earlier = query(sql, part, LogQuery(after=(cursor[0], cursor[1] + 1), limit=each + 1))
    return [*reversed(later), *earlier]


def arrived(sql: Sql, part: str, after: int, limit: int = MAX_PAGE) -> list[LogRecord]:
    """Return entries of a part that arrived after number `after`, in order of arrival."""
    rows = sql.rows(
        "SELECT * FROM log_entries WHERE part_id = ? AND number > ? ORDER BY number LIMIT ?", part, after, limit
    )
    return [_record(row) for row in rows]


def newest(sql: Sql, until: datetime | None = None) -> int:
    """Return the number of the entry that arrived last (at or before `until`, if set); 0 if there is none."""
    if until is None:
        row = sql.row("SELECT number FROM log_entries ORDER BY number DESC LIMIT 1")
    else:
        query = "SELECT number FROM log_entries WHERE received <= ? ORDER BY received DESC, number DESC LIMIT 1"
        row = sql.row(query, stored(until))
    return row["number"] if row is not None else 0


def expire(sql: Sql, now: datetime) -> int:
    """Delete up to AT_ONCE entries older than RETENTION; return their number."""
    old = "SELECT number FROM log_entries WHERE received < ? ORDER BY received LIMIT ?"
    return sql.run(f"DELETE FROM log_entries WHERE number IN ({old})", stored(now - RETENTION), AT_ONCE)


def _record(row: Mapping[str, Any]) -> LogRecord:
    return LogRecord(
        time=moment_of(_stated(row)),
        level=row["level"],
        logger=row["logger"],
        message=row["message"],
        host=row["host"],
        caller=json.loads(row["caller"]),
        stack=row["stack"],
        fields=tuple(json.loads(row["fields"])),
        number=row["number"],
        received=moment_of(row["received"]),
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} … ({len(text) - MAX_TEXT} characters cut off)"
