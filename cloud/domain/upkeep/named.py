"""Blobs that rows of the database refer to. Each owner of blobs is listed in both tables here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cloud.blobs import Blob
from cloud.domain.data import files as captured
from cloud.domain.data.segments import listed as segments
from cloud.domain.registry import files as packages
from cloud.domain.releases import files as releases
from cloud.store.sql import Sql

OWNERS: Final[tuple[Callable[[Sql, str, str], dict[str, Blob]], ...]] = (
    captured.blobs_from,
    segments.blobs_from,
    packages.blobs_from,
    releases.blobs_from,
)
"""Functions that return the blobs of one owner's rows with keys from the first on and before the last."""

SAMPLES: Final[tuple[Callable[[Sql, int], list[str]], ...]] = (
    captured.sample,
    segments.sample,
    packages.sample,
    releases.sample,
)
"""Functions that return the keys of one owner's oldest and newest blobs, at most the given number of each."""

SAMPLE: Final = 8  # number of the oldest, and of the newest


def named(sql: Sql, first: str, last: str) -> dict[str, Blob]:
    """Return all blobs that rows refer to, with keys from `first` on and before `last`."""
    blobs: dict[str, Blob] = {}
    for owner in OWNERS:
        blobs |= owner(sql, first, last)
    return blobs


def sample(sql: Sql) -> list[str]:
    """Return keys of some blobs that rows refer to: the oldest and the newest of each kind."""
    return sorted({key for take_sample in SAMPLES for key in take_sample(sql, SAMPLE)})
