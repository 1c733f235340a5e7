"""Which files the rows of the database name. Whoever keeps blobs has a line in each table here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cloud.blobs import Blob
from cloud.data import files as captured
from cloud.registry import files as packages
from cloud.store.sql import Sql

OWNERS: Final[tuple[Callable[[Sql, str, str], dict[str, Blob]], ...]] = (captured.blobs_from, packages.blobs_from)
"""Each gives the blobs that its rows name, with keys from the first on and before the last."""

SAMPLES: Final[tuple[Callable[[Sql, int], list[str]], ...]] = (captured.sample, packages.sample)
"""Each gives the keys of its oldest and newest blobs, at most so many of each."""

SAMPLE: Final = 8  # of the oldest and of the newest


def named(sql: Sql, first: str, last: str) -> dict[str, Blob]:
    """Every blob that a row names, with keys from `first` on and before `last`."""
    found: dict[str, Blob] = {}
    for owner in OWNERS:
        found |= owner(sql, first, last)
    return found


def sample(sql: Sql) -> list[str]:
    """Keys of some blobs that rows name, the oldest and the newest of each kind."""
    return sorted({key for some in SAMPLES for key in some(sql, SAMPLE)})
