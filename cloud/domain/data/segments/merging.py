"""Merging: small segments of one source that follow each other become one, so that a slow source has few files."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from cloud.domain.data.segments import listed, sealing
from cloud.domain.data.segments.listed import COLUMNS, Segment, segment_of
from cloud.domain.data.segments.reading import Files, Range
from cloud.domain.data.segments.sealing import Changed, Due, Transactions
from cloud.store.sql import Sql
from cloud.values.times import Clock

FEWEST: Final = 4  # segments that are worth a merge
SPAN: Final = timedelta(days=35)
"""Between the first and the last reading: retention removes whole segments, so a slow source may keep readings that
much longer. A source with a reading an hour has a segment a week, and then one for five weeks."""

_MICROSECOND: Final = timedelta(microseconds=1)


async def merged(store: Transactions, files: Files, due: Due, clock: Clock) -> int:
    """Replace the newest segments of a source, if they are small, by one; return how many were replaced.

    0 if they are too few. Changed if others changed them at the same time; then nothing has happened.
    """
    segments = await store.read(partial(_small, source=due.source))
    if len(segments) < FEWEST:
        return 0
    rows = [row for segment in segments for row in await files.rows(segment, Range(None, None))]
    numbers = [segment.number for segment in segments]

    def replaced(sql: Sql) -> None:
        if listed.drop(sql, due.owner, numbers, clock())[0] != len(numbers):
            raise Changed

    await sealing.keep(store, files.blobs, files.run, due.owner, rows, clock, replaced)
    return len(numbers)


def _small(sql: Sql, source: int) -> list[Segment]:
    """Return the newest segments of a source up to the first that is not small, as many as one segment may hold."""
    rows = sql.rows(
        f"SELECT {COLUMNS} FROM segments WHERE source = ? ORDER BY last DESC, last_number DESC LIMIT ?",
        source,
        SPAN // sealing.SPAN + FEWEST,
    )
    chosen, count, characters = list[Segment](), 0, 0
    for segment in map(segment_of, rows):
        count, characters = count + segment.count, characters + segment.characters
        spans = rows[0]["last"] - segment.first[0] > SPAN // _MICROSECOND
        if segment.count >= sealing.SOME or count > sealing.MOST or characters > sealing.CHARACTERS or spans:
            break
        chosen.append(segment)
    return chosen
