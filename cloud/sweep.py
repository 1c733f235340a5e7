"""Removes blobs that no row names: what deleting, expiring and crashes leave behind.

A blob without a row stays in the trash for `trash.DELAY` first. Those whose rows were deleted go then. Others are few,
left over by crashes; if they are many, something is wrong with the database, and they stay until a person decides.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Final

from cloud import trash
from cloud.blobs import Blobs, discard
from cloud.identity import confirm
from cloud.named import named
from cloud.store.sql import Sql, Store
from cloud.times import stored

AGE: Final = 3600.0  # seconds that a blob may wait for its row; an upload writes it at once
MOST: Final = 5  # blobs that were never seen with a row and are removed without a question
SHARE: Final = 0.1  # of all blobs; more than this and more than MOST are not removed


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep has done and seen."""

    removed: int = 0  # blobs, and uploads given up half-way
    noticed: int = 0  # blobs without a row that were not in the trash before
    held: int = 0  # blobs without a row that stay because they are too many
    total: int = 0  # blobs in the store


@dataclass(slots=True)
class _Look:
    """What a listing has shown of the blobs that no row names."""

    total: int = 0
    noticed: int = 0
    strays: int = 0  # nobody has deleted a row that named them
    kept: set[str] = field(default_factory=set)  # blobs that are in the trash and in the store
    due_deleted: list[str] = field(default_factory=list)
    due_strays: list[str] = field(default_factory=list)


async def sweep(
    store: Store, blobs: Blobs, now: datetime, *, age: float = AGE, delay: timedelta = trash.DELAY
) -> Swept:
    """Remove what has been in the trash for `delay`, and what was given up half-way. May be cancelled at any time.

    Blobs younger than `age` seconds are left alone. Raises MachineError, with nothing removed, if the store does not
    belong to the database, or if one of them cannot be reached.
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
        left = await store.read(partial(_unnamed, keys=set(some)))  # once more: a row may name one by now
        count = await discard(blobs, left)
        removed += count
        if count < len(left):
            break  # the next sweep goes on
        await store.write(partial(trash.forget, keys=left))
    return Swept(removed, look.noticed, look.strays if held else 0, look.total)


async def _look_at(store: Store, page: set[str], old: set[str], now: datetime, before: datetime, look: _Look) -> None:
    """Note the blobs of a page that no row names, and take those out of the trash that a row names again."""

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
