"""Deletion of blobs without rows, which remain after deletions, expiry and crashes.

A blob without a row stays in the trash for `trash.DELAY` first. Blobs whose rows were deleted are then removed. There
should be few others, left over by crashes; if there are many, something is wrong with the database, and they stay until
an administrator decides.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Final

from cloud.blobs import Blobs, discard
from cloud.domain.upkeep.identity import confirm
from cloud.domain.upkeep.named import named
from cloud.store import trash
from cloud.store.sql import Sql, Store
from cloud.values.times import stored

AGE: Final = 3600.0  # seconds that a blob may be without a row; an upload writes the row at once
MOST: Final = 5  # number of blobs that no deleted row referred to and that are removed in any case
SHARE: Final = 0.1  # share of all blobs; more than this and more than MOST are not removed


@dataclass(frozen=True, slots=True)
class Swept:
    """Result of a sweep."""

    removed: int = 0  # blobs, and incomplete uploads
    noticed: int = 0  # blobs without a row that were not in the trash yet
    held: int = 0  # blobs without a row that stay because there are too many
    total: int = 0  # blobs in the store


@dataclass(slots=True)
class _Look:
    """What is known about blobs without rows after a listing."""

    total: int = 0
    noticed: int = 0
    strays: int = 0  # blobs that no deleted row referred to
    kept: set[str] = field(default_factory=set)  # blobs that are in the trash and in the store
    due_deleted: list[str] = field(default_factory=list)
    due_strays: list[str] = field(default_factory=list)


async def sweep(
    store: Store, blobs: Blobs, now: datetime, *, age: float = AGE, delay: timedelta = trash.DELAY
) -> Swept:
    """Remove blobs that were in the trash for `delay`, and incomplete uploads. Can be cancelled at any time.

    Blobs younger than `age` seconds are ignored. Raise MachineError if the store does not match the database, in which
    case nothing is removed, or if one of them is unavailable.
    """
    await confirm(store, blobs)
    removed = await blobs.tidy(age)
    look, before = _Look(), now - delay
    async with aclosing(blobs.listed()) as pages:
        async for page in pages:
            look.total += len(page)
            if page:
                old = {one.key for one in page if one.time < now.timestamp() - age}
                await _look_at(store, {one.key for one in page}, old, now, before, look)
    held = look.strays > MOST and look.strays > SHARE * look.total
    due = look.due_deleted if held else look.due_deleted + look.due_strays
    gone = set(await store.read(partial(trash.before, moment=before))) - look.kept
    if gone:
        await store.write(partial(trash.forget, keys=gone))
    for _, some in groupby(sorted(due), lambda key: key[:2]):
        left = await store.read(partial(_unnamed, keys=set(some)))  # check again: a row may refer to one by now
        count = await discard(blobs, left)
        removed += count
        if count < len(left):
            break  # the next sweep continues
        await store.write(partial(trash.forget, keys=left))
    return Swept(removed, look.noticed, look.strays if held else 0, look.total)


async def _look_at(store: Store, page: set[str], old: set[str], now: datetime, before: datetime, look: _Look) -> None:
    """Put the blobs of a page that have no row into the trash, and take out those that have one again."""

    def read(sql: Sql) -> tuple[list[str], dict[str, tuple[int, bool]]]:
        return _unnamed(sql, old), trash.between(sql, min(page), max(page) + "0")

    unnamed, there = await store.read(read)
    new = [key for key in unnamed if key not in there]
    again = sorted(there.keys() & old - set(unnamed))
    if new or again:

        def write(sql: Sql) -> None:
            trash.noticed(sql, new, now)
            trash.forget(sql, again)

        await store.write(write)
    look.noticed += len(new)
    look.kept |= (there.keys() & page) | set(new)
    for key in unnamed:
        since, deleted = there.get(key, (stored(now), False))
        look.strays += not deleted
        if since < stored(before):
            (look.due_deleted if deleted else look.due_strays).append(key)


def _unnamed(sql: Sql, keys: set[str]) -> list[str]:
    if not keys:
        return []
    return sorted(keys - named(sql, min(keys), max(keys) + "0").keys())
