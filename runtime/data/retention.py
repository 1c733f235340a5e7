"""Making room: which captured files go when the disk is nearly full."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime.data.names import CLOSED
from runtime.data.read import capture_files


@dataclass(frozen=True, slots=True)
class Limits:
    """When files are deleted: the disk is used, and the capture folder has its part of it (both 0 to 1)."""

    disk: float
    folder: float
    every: int  # each n-th file goes


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes of the disk in all, used, and used by the closed files, which are named."""

    total: int
    used: int
    files: tuple[tuple[Path, int], ...] = ()

    @property
    def ratio(self) -> float:
        """Part of the disk that is used."""
        return self.used / self.total if self.total else 0.0

    @property
    def folder_ratio(self) -> float:
        """Part of the disk that captured files use."""
        return sum(size for _, size in self.files) / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a look at the disk has led to; `warn` if it is full of other things."""

    usage: Usage
    files: int = 0
    bytes: int = 0
    warn: bool = False


def disk_of(folder: Path) -> tuple[int, int]:
    """Bytes of the disk that hold `folder`: in all and used, as df(1) counts them, without what root keeps."""
    disk = os.statvfs(folder)
    used = disk.f_blocks - disk.f_bfree
    return (used + disk.f_bavail) * disk.f_frsize, used * disk.f_frsize


Measure = Callable[[Path], tuple[int, int]]
"""Bytes of a folder's disk, in all and used."""


def chosen(files: Sequence[tuple[Path, int]], every: int) -> Sequence[tuple[Path, int]]:
    """Each n-th file, oldest first: the record becomes thinner and keeps its span."""
    return files[::every]


def make_room(
    folder: Path, limits: Limits, measure: Measure = disk_of, held: Collection[Path] = frozenset()
) -> Deleted:
    """Look at the disk and delete what `limits` say, but nothing of `held`. Blocking; OSError if the disk refuses."""
    usage = usage_of(folder, limits.disk, measure)
    if usage.ratio < limits.disk:
        return Deleted(usage)
    if usage.folder_ratio < limits.folder:
        return Deleted(usage, warn=True)
    count = size = 0
    for path, length in chosen([one for one in usage.files if one[0] not in held], limits.every):
        try:
            path.unlink()
        except FileNotFoundError:
            continue
        count, size = count + 1, size + length
    return Deleted(usage, count, size)


def usage_of(folder: Path, worth_a_walk: float, measure: Measure = disk_of) -> Usage:
    """Of the disk; files are looked at only from a certain use on, since there may be very many."""
    total, used = measure(folder)
    if not total or used / total < worth_a_walk:
        return Usage(total, used)
    files = [(path, path.stat().st_size) for path in capture_files(folder) if path.suffix == CLOSED]
    files.sort(key=lambda one: (one[0].name, one[0]))  # names are times
    return Usage(total, used, tuple(files))
