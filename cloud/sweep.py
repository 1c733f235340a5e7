"""Removes blobs that no row names: what deleting, expiring and crashes leave behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cloud.blobs import Blobs, discard
from cloud.data import files as captured
from cloud.registry import files as packages
from cloud.store.sql import Sql, Store

AGE: Final = 3600.0  # seconds that a blob may wait for its row; an upload writes it at once

OWNERS: Final[tuple[Callable[[Sql, str, str], set[str]], ...]] = (captured.blobs_from, packages.blobs_from)
"""Each tells which keys, from the first on and before the last, its rows name. Whoever keeps blobs has a line here."""


async def sweep(store: Store, blobs: Blobs, age: float = AGE) -> int:
    """Remove what nobody names, and what was given up half-way; how many that were. May be cancelled at any time."""
    removed = await blobs.tidy(age)
    for number in range(256):
        prefix, following = f"{number:02x}", f"{number + 1:02x}" if number < 255 else "g"
        old = await blobs.old(prefix, age)
        if not old:
            continue
        named = await store.read(
            lambda sql, first=prefix, last=following: set().union(*(own(sql, first, last) for own in OWNERS))  # type: ignore[misc]
        )
        removed += await discard(blobs, sorted(old - named))
    return removed
