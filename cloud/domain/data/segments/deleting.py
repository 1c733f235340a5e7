"""Deletion of readings in segments: of whole ones at once, and of a part of one by a new segment without it."""

from __future__ import annotations

from functools import partial
from typing import Final

from cloud.domain.data.filters import DataFilter, DataScope
from cloud.domain.data.segments import listed
from cloud.domain.data.segments.listed import Segment
from cloud.domain.data.segments.reading import Files, Range, overlapping, range_of
from cloud.domain.data.segments.sealing import Changed, Transactions, keep
from cloud.domain.data.sources import by_numbers
from cloud.store.sql import Sql
from cloud.values.times import Clock

AT_ONCE: Final = 100  # segments that one transaction deletes


async def delete(store: Transactions, files: Files, data_filter: DataFilter, owner: str, now: Clock) -> int:
    """Delete the matching readings of an organization that are in segments; return their number.

    A call that fails may have deleted some of them.
    """
    scope, within, deleted = DataScope((owner,)), range_of(data_filter), 0
    kept: set[int] = set()  # segments that overlap the range, but have no reading in it
    while segments := await store.read(lambda sql: _next(sql, data_filter, scope, kept)):
        whole = [segment for segment in segments if within.holds(segment)]
        if whole:
            numbers = [segment.number for segment in whole]
            deleted += (await store.write(partial(listed.drop, owner=owner, numbers=numbers, now=now())))[1]
        for segment in segments:
            if segment not in whole:
                deleted += await _rewritten(store, files, segment, within, owner, now, kept)
    return deleted


def _next(sql: Sql, data_filter: DataFilter, scope: DataScope, kept: set[int]) -> list[Segment]:
    segments = overlapping(sql, data_filter, scope, AT_ONCE + len(kept))
    return [segment for segment in segments if segment.number not in kept]


async def _rewritten(
    store: Transactions,
    files: Files,
    segment: Segment,
    within: Range,
    owner: str,
    now: Clock,
    kept: set[int],
) -> int:
    """Delete the readings of a segment in a range; return their number: 0 if others changed it at the same time."""
    (source,) = (await store.read(lambda sql: by_numbers(sql, [segment.source]))).values()
    rows = await files.rows(segment, Range(None, None), of=f"{source.machine}, {source.component} {source.method}")
    inside = {row.number for row in await files.rows(segment, within)}
    if not inside:
        kept.add(segment.number)
        return 0
    remaining = [row for row in rows if row.number not in inside]

    def replaced(sql: Sql) -> None:
        if listed.drop(sql, owner, [segment.number], now())[0] != 1:
            raise Changed

    try:
        if remaining:
            await keep(store, files.blobs, files.run, owner, remaining, now, replaced)
        else:
            await store.write(partial(replaced))
    except Changed:
        return 0
    return len(inside)
