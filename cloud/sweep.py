"""Removes blobs that no row names: what deleting, expiring and crashes leave behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
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
    before = time.time() - age
    async with aclosing(blobs.listed()) as pages:
        async for page in pages:
            old = {one.key for one in page if one.time < before}
            if old:
                removed += await discard(blobs, sorted(old - await store.read(partial(_named, old))))
    return removed


def _named(keys: set[str], sql: Sql) -> set[str]:
    """Those that a row names, and perhaps others between them."""
    first, following = min(keys), max(keys) + "0"
    return set().union(*(own(sql, first, following) for own in OWNERS))
