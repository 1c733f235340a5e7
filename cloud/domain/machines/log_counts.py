"""Counts of log entries of each machine by level, in steps of time: what a plot reads instead of the entries.

They are written in the transaction of the entries, and kept as long as these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cloud.store.sql import Sql
from cloud.values.buckets import Buckets, buckets_of
from cloud.values.times import stored

KEPT: Final = timedelta(days=30)  # entries and counts; specification, section 8
STEP: Final = timedelta(minutes=10) // timedelta(microseconds=1)
MAX_POINTS: Final = 2000
AT_ONCE: Final = 5000  # rows that one transaction deletes

LEVELS: Final[Mapping[str, tuple[str, ...]]] = {
    "debug": ("debug", "trace"),
    "info": ("info", "notice", ""),
    "warn": ("warn", "warning"),
    "error": ("error", "fatal", "panic", "dpanic", "critical"),
}
"""Names of each level in loggers of several languages, ascending."""

_LEVEL_OF: Final = {name: level for level, names in LEVELS.items() for name in names}


@dataclass(frozen=True, slots=True)
class LogCounts:
    """Counts from `start` to `end`, as stored times: for each level, a number for each bucket."""

    start: int
    end: int
    buckets: Buckets
    levels: Mapping[str, list[int]]


def levels_of(names: Iterable[str]) -> list[str]:
    """Return the levels under which entries with these names of levels are counted, in order."""
    return sorted({_LEVEL_OF.get(name.lower(), "info") for name in names})


def add(sql: Sql, part: str, entries: Iterable[tuple[int, str]], now: datetime) -> None:
    """Count entries, which are stored times and names of levels; those that are too old for a plot are left out."""
    oldest = stored(now - KEPT)
    counts = Counter(
        (moment // STEP * STEP, _LEVEL_OF.get(name, "info")) for moment, name in entries if moment >= oldest
    )
    sql.many(
        """
        INSERT INTO log_counts (part_id, start, level, count) VALUES (?, ?, ?, ?)
        ON CONFLICT (part_id, start, level) DO UPDATE SET count = log_counts.count + excluded.count
        """,
        [(part, start, level, count) for (start, level), count in sorted(counts.items())],
    )


def read(sql: Sql, part: str, start: datetime, end: datetime, points: int) -> LogCounts:
    """Return counts in at most `points` buckets of at least STEP; `start` is before `end`."""
    first, last = stored(start), stored(end)
    longest = max(2, -(-(last - first) // STEP) + 1)
    buckets = buckets_of(first, last, min(points, longest, MAX_POINTS))
    step = -(-buckets.step // STEP) * STEP  # a count belongs to a single bucket
    if step != buckets.step:
        buckets = Buckets(first // step * step, step, (last - 1) // step - first // step + 1)
    levels = {level: [0] * buckets.count for level in LEVELS}
    rows = sql.rows(
        """
        SELECT (start - ?) / ? AS bucket, level, SUM(count) AS count FROM log_counts
        WHERE part_id = ? AND start >= ? AND start < ? GROUP BY 1, 2
        """,
        buckets.first,
        buckets.step,
        part,
        buckets.first,
        last,
    )
    for row in rows:
        levels[row["level"]][row["bucket"]] += int(row["count"])
    return LogCounts(first, last, buckets, levels)


def expire(sql: Sql, now: datetime) -> int:
    """Delete up to AT_ONCE counts older than KEPT; return their number."""
    old = "SELECT part_id, start, level FROM log_counts WHERE start < ? ORDER BY start LIMIT ?"
    oldest = stored(now - KEPT) - STEP
    return sql.run(f"DELETE FROM log_counts WHERE (part_id, start, level) IN ({old})", oldest, AT_ONCE)
