"""The logs of many machines as one, newest entry first.

A search reads the counts of entries (`log_counts`) backwards in time, and then the entries of the machines and times at
which there are any of its levels. It ends after BUDGET entries, whether they match or not, and WIDEST counts, so that
its cost does not grow with what is stored; the caller continues where it ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Final

from cloud.domain.machines import logs
from cloud.domain.machines.log_counts import KEPT, STEP, levels_of
from cloud.domain.machines.logs import LogQuery, LogRecord
from cloud.store.sql import Sql
from cloud.values.cursor import Cursor
from cloud.values.times import stored

BUDGET: Final = 30_000
"""Entries that a search looks at: less than 0.1 s of processor time in SQLite if it compares their text."""
SLICE: Final = 10_000
"""Entries that one statement looks at; more in the same step of time are read in several parts of it."""
MAX_PARTS: Final = 10_000
"""Parts of a search; others are left out."""
WIDE: Final = 50_000
"""Counts that are read at once, one for each part and step of time."""
WIDEST: Final = 400_000
"""Counts that a search reads: about 0.2 s in SQLite."""
_AT_ONCE: Final = 500  # parts in one statement


@dataclass(frozen=True, slots=True)
class FleetLog:
    """Entries with their parts, newest first.

    `after` is where the next search continues, None if nothing older can match. `full` tells that it ended because of
    the number of entries that it returns, not because of those that it looked at.
    """

    entries: Sequence[tuple[str, LogRecord]]
    after: Cursor | None
    full: bool


@dataclass(frozen=True, slots=True)
class _Span:
    """A range of time with entries of some parts; `count` is about their number. Without parts, the search ends."""

    start: int
    end: int
    parts: Sequence[str]
    count: int


def search(sql: Sql, parts: Sequence[str], query: LogQuery, now: datetime) -> FleetLog:
    """Return matching entries of parts, at most `query.limit`. `query.ascending` is ignored."""
    oldest = stored(now - KEPT)
    first = oldest if query.start is None else max(oldest, stored(query.start))
    last = stored(now) + 1 if query.end is None else min(stored(query.end), stored(now) + 1)
    if query.after is not None:
        last = min(last, query.after[0] + (query.after[1] > 0))  # entries of that time may remain
    limit = max(1, min(query.limit, logs.MAX_PAGE))
    entries: list[tuple[str, LogRecord]] = []
    seen = 0
    for span in _spans(sql, parts[:MAX_PARTS], query.levels, first, last):
        if (seen and seen + span.count > BUDGET) or not span.parts:
            return FleetLog(entries, (span.end, 0), full=False)
        entries += _entries(sql, span, query, limit - len(entries))
        seen += span.count
        if len(entries) >= limit:
            _, record = entries[-1]
            return FleetLog(entries, (stored(record.position), record.number), full=True)
    return FleetLog(entries, None, full=False)


def _spans(sql: Sql, parts: Sequence[str], levels: Sequence[str], first: int, last: int) -> Iterator[_Span]:
    """Yield ranges of time with entries, the newest first, each with at most about SLICE entries."""
    if not parts:
        return
    end, steps, left = (last - 1) // STEP + 1, 1, WIDEST // len(parts)
    while end * STEP > first:
        if left <= 0:
            yield _Span(first, end * STEP, (), 0)
            return
        start = max(end - steps, first // STEP)
        counts: dict[int, dict[str, int]] = defaultdict(dict)
        for chunk in _chunks(parts):
            for moment, part, count in _counts(sql, chunk, levels, start * STEP, end * STEP):
                counts[moment][part] = count
        for moment in sorted(counts, reverse=True):
            yield from _slices(moment, counts[moment], first, last)
        left -= end - start
        end, steps = start, max(1, min(2 * steps, WIDE // len(parts)))


def _slices(moment: int, counts: dict[str, int], first: int, last: int) -> Iterator[_Span]:
    total = sum(counts.values())
    number = -(-total // SLICE)
    length = -(-STEP // number)
    for index in reversed(range(number)):
        start, end = max(moment + index * length, first), min(moment + (index + 1) * length, moment + STEP, last)
        if start < end:
            yield _Span(start, end, tuple(counts), -(-total // number))


def _counts(
    sql: Sql, parts: Sequence[str], levels: Sequence[str], start: int, end: int
) -> Iterator[tuple[int, str, int]]:
    places, kinds = ", ".join("?" * len(parts)), levels_of(levels)
    condition = f" AND level IN ({', '.join('?' * len(kinds))})" if kinds else ""
    rows = sql.rows(
        "SELECT part_id, start, SUM(count) AS count FROM log_counts "
        f"WHERE part_id IN ({places}) AND start >= ? AND start < ?{condition} GROUP BY part_id, start",
        *parts,
        start,
        end,
        *kinds,
    )
    for row in rows:
        yield int(row["start"]), str(row["part_id"]), int(row["count"])


def _entries(sql: Sql, span: _Span, query: LogQuery, limit: int) -> list[tuple[str, LogRecord]]:
    entries: list[tuple[str, LogRecord]] = []
    for chunk in _chunks(span.parts):
        entries += logs.within(sql, chunk, span.start, span.end, replace(query, limit=limit))
    entries.sort(key=lambda entry: (entry[1].position, entry[1].number), reverse=True)
    return entries[:limit]


def _chunks(parts: Sequence[str]) -> Iterator[Sequence[str]]:
    rest = iter(parts)
    while chunk := tuple(islice(rest, _AT_ONCE)):
        yield chunk
