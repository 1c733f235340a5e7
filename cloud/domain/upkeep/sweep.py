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
class _Inventory:
    """What is known about blobs without rows after a listing."""

    total: int = 0
    noticed: int = 0
    strays: int = 0  # blobs that no deleted row referred to
    tracked: set[str] = field(default_factory=set)  # blobs that are in the trash and in the store
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
    inventory, before = _Inventory(), now - delay
    async with aclosing(blobs.listed()) as pages:
        async for page in pages:
            inventory.total += len(page)
            if page:
                old = {blob.key for blob in page if blob.time < now.timestamp() - age}
                await _compare_page(store, {blob.key for blob in page}, old, now, before, inventory)
    held = inventory.strays > MOST and inventory.strays > SHARE * inventory.total
    due = inventory.due_deleted if held else inventory.due_deleted + inventory.due_strays
    vanished = set(await store.read(partial(trash.before, moment=before))) - inventory.tracked
    if vanished:
        await store.write(partial(trash.forget, keys=vanished))
    for _, group in groupby(sorted(due), lambda key: key[:2]):
        unnamed = await store.read(partial(_unnamed, keys=set(group)))  # check again: a new row may refer to one
        count = await discard(blobs, unnamed)
        removed += count
        if count < len(unnamed):
            break  # the next sweep continues
        await store.write(partial(trash.forget, keys=unnamed))
    return Swept(removed, inventory.noticed, inventory.strays if held else 0, inventory.total)


async def _compare_page(
    store: Store, page: set[str], old: set[str], now: datetime, before: datetime, inventory: _Inventory
) -> None:
    """Put the blobs of a page that have no row into the trash, and take out those that have one again."""

    def read(sql: Sql) -> tuple[list[str], dict[str, tuple[int, bool]]]:
        return _unnamed(sql, old), trash.between(sql, min(page), max(page) + "0")

    unnamed, in_trash = await store.read(read)
    untracked = [key for key in unnamed if key not in in_trash]
    named_again = sorted(in_trash.keys() & old - set(unnamed))
    if untracked or named_again:

        def write(sql: Sql) -> None:
            trash.noticed(sql, untracked, now)
            trash.forget(sql, named_again)

        await store.write(write)
    inventory.noticed += len(untracked)
    inventory.tracked |= (in_trash.keys() & page) | set(untracked)
    for key in unnamed:
        since, deleted = in_trash.get(key, (stored(now), False))
        inventory.strays += not deleted
        if since < stored(before):
            (inventory.due_deleted if deleted else inventory.due_strays).append(key)


def _unnamed(sql: Sql, keys: set[str]) -> list[str]:
    if not keys:
        return []
    return sorted(keys - named(sql, min(keys), max(keys) + "0").keys())
