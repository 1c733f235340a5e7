"""Sealing: readings that arrived long enough ago become segments, and leave the table `readings`.

A segment is complete in the file store before one transaction names it and deletes the rows that it replaces. The key
of its file is in the trash before the upload, and leaves it in that transaction: whatever ends a process, each reading
is in exactly one place, and a file that nothing names is removed by the sweep.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol, TypeVar

from cloud.blobs import Blobs, discard, new_key
from cloud.domain.data.segments import listed
from cloud.domain.data.segments.catalog import column_ids
from cloud.domain.data.segments.columns import KEYS, Columns, SegmentRow, columns_of
from cloud.domain.data.segments.listed import NewSegment, SegmentFacts, facts_of
from cloud.domain.data.segments.parquet import written
from cloud.domain.data.sources import chunks
from cloud.store.sql import Sql
from cloud.values.times import Clock, stored
from schema import ErrorKind, MachineError
from support import RunBlocking

MOST: Final = 20_000  # readings of a segment: deleting their rows is one transaction
CHARACTERS: Final = 8_000_000  # of their JSON, which is in memory
SPAN: Final = timedelta(days=7)  # between the first and the last arrival: retention removes whole segments
SOME: Final = 1000  # readings that are worth a segment
WAIT: Final = timedelta(days=1)  # how much longer a source may wait until it has MOST readings
LONGEST: Final = timedelta(days=7)  # how much longer it may wait until it has SOME
CLAIM: Final = timedelta(days=1)  # between the note of a file and its segment: far less than the delay of the trash
SOURCES: Final = 200  # sources that one transaction looks at

T = TypeVar("T")


class Transactions(Protocol):
    """The database, see cloud.store.sql.Store; or the transactions of a call."""

    async def read(self, work: Callable[[Sql], T]) -> T:
        """Run a transaction that reads."""
        ...

    async def write(self, work: Callable[[Sql], T]) -> T:
        """Run a transaction that writes."""
        ...


@dataclass(frozen=True, slots=True)
class Due:
    """A source with readings to be sealed, and its organization."""

    source: int
    owner: str


class Changed(Exception):
    """The readings of a segment were deleted or sealed by others in the meantime."""


async def sealed(store: Transactions, blobs: Blobs, run: RunBlocking, due: Due, before: datetime, clock: Clock) -> int:
    """Seal the oldest readings of a source that arrived before `before`; return their number.

    0 if there are none, or too few. Changed if others changed them at the same time; then nothing has happened.
    """
    rows = await store.read(partial(_rows, source=due.source, before=before))
    if rows:
        await keep(
            store, blobs, run, due.owner, rows, clock, partial(_delete_rows, numbers=[row.number for row in rows])
        )
    return len(rows)


async def keep(
    store: Transactions,
    blobs: Blobs,
    run: RunBlocking,
    owner: str,
    rows: Sequence[SegmentRow],
    clock: Clock,
    replaced: Callable[[Sql], None],
) -> None:
    """Store readings of one source as a segment. `replaced` deletes what it replaces in the same transaction.

    `replaced` raises Changed if that has changed.
    """
    columns, facts = await run(lambda: (columns_of(rows), facts_of(rows)))
    await keep_columns(store, blobs, run, owner, columns, facts, clock, replaced)


async def keep_columns(
    store: Transactions,
    blobs: Blobs,
    run: RunBlocking,
    owner: str,
    columns: Columns,
    facts: SegmentFacts,
    clock: Clock,
    replaced: Callable[[Sql], None],
) -> None:
    """Store readings that are columns already, and `facts` about them. The rest is as for `keep`."""
    key, now = new_key(), clock()

    def prepared(sql: Sql) -> list[int | None]:
        listed.expect(sql, key, now)
        return column_ids(sql, owner, columns.kinds, now)

    ids = await store.write(prepared)
    if None in ids:
        fields = list(zip(columns.kinds, ids[len(KEYS) + 1 :], strict=True))
        allowed = {path for path, number in fields if number is not None}
        columns = await run(partial(_with_fields, columns, allowed))
        ids = await store.write(lambda sql: column_ids(sql, owner, columns.kinds, now))
    numbers = [number for number in ids if number is not None]

    def made() -> NewSegment:
        content, summaries = written(columns, numbers)
        return NewSegment(facts, content, numbers, summaries)

    new: NewSegment = await run(made)
    blob = await blobs.put(_single(new.content), key)

    def commit(sql: Sql) -> None:
        if not listed.claim(sql, key, clock() - CLAIM):
            raise Changed
        replaced(sql)
        listed.add(sql, owner, new, blob, now)

    try:
        await store.write(commit)
    except Changed:
        await discard(blobs, [key])
        raise


def _with_fields(columns: Columns, allowed: Collection[str]) -> Columns:
    return columns_of(list(columns.rows()), allowed)


def due_sources(sql: Sql, after: int, before: datetime) -> tuple[list[Due], int | None, bool]:
    """Look at SOURCES sources with numbers greater than `after`.

    Return those that are due, given that readings that arrived before `before` may be sealed; the number of the last
    source that was looked at, or None at the end; and whether any of them has readings.
    """
    rows = sql.rows(
        """
        SELECT number, organization_id, (
            SELECT synced FROM readings WHERE readings.source = data_sources.number ORDER BY synced LIMIT 1
        ) AS oldest FROM data_sources WHERE number > ? ORDER BY number LIMIT ?
        """,
        after,
        SOURCES,
    )
    due = [
        Due(row["number"], row["organization_id"])
        for row in rows
        if row["oldest"] is not None
        and row["oldest"] < stored(before)
        and _waiting(sql, row["number"], before) >= _least(row["oldest"], before)
    ]
    last = rows[-1]["number"] if len(rows) == SOURCES else None
    return due, last, any(row["oldest"] is not None for row in rows)


def _least(oldest: int, before: datetime) -> int:
    """Return how many readings of a source are sealed, if the oldest arrived at `oldest`."""
    if oldest < stored(before - LONGEST):
        return 1
    return SOME if oldest < stored(before - WAIT) else MOST


def _waiting(sql: Sql, source: int, before: datetime) -> int:
    """Return the number of readings of a source that may be sealed, at most MOST."""
    few = "SELECT 1 AS one FROM readings WHERE source = ? AND synced < ? LIMIT ?"
    row = sql.row(f"SELECT COUNT(*) AS count FROM ({few}) AS few", source, stored(before), MOST)
    return int(row["count"]) if row is not None else 0


def _rows(sql: Sql, source: int, before: datetime) -> list[SegmentRow]:
    """Return the readings of the next segment of a source: those that arrived first, within all limits.

    None if they are too few.
    """
    first = sql.row("SELECT synced FROM readings WHERE source = ? ORDER BY synced LIMIT 1", source)
    if first is None or _waiting(sql, source, before) < _least(first["synced"], before):
        return []  # the rest waits for more
    candidates = sql.rows(
        "SELECT number, LENGTH(data) AS size FROM readings WHERE source = ? AND synced < ? ORDER BY synced LIMIT ?",
        source,
        min(stored(before), first["synced"] + SPAN // _MICROSECOND),
        MOST,
    )
    numbers, characters = list[int](), 0
    for row in candidates:
        characters += row["size"]
        if numbers and characters > CHARACTERS:
            break
        numbers.append(row["number"])
    return [
        SegmentRow(source, row["requested"], row["received"], row["synced"], row["number"], row["data"])
        for chunk in chunks(numbers)
        for row in sql.rows(
            f"SELECT number, requested, received, synced, data FROM readings WHERE number IN ({_marks(chunk)})", *chunk
        )
    ]


def _delete_rows(sql: Sql, numbers: Sequence[int]) -> None:
    deleted = sum(
        sql.run(f"DELETE FROM readings WHERE number IN ({_marks(chunk)})", *chunk) for chunk in chunks(list(numbers))
    )
    if deleted != len(numbers):
        raise Changed


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


_MICROSECOND: Final = timedelta(microseconds=1)


async def _single(content: bytes) -> AsyncIterator[bytes]:
    yield content


def missing_file(source: str) -> MachineError:
    """Return the error for readings whose file does not exist."""
    return MachineError(
        f"some old readings of {source} cannot be read: their file does not exist",
        kind=ErrorKind.UNAVAILABLE,
        remedy="restore the file from a backup: `machine-cloud doctor` lists the missing ones",
    )
