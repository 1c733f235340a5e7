"""Deletion of captured files when the disk is nearly full."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime.parts.data.files.names import CLOSED
from runtime.parts.data.files.read import capture_files


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for deletion. Files are deleted if both shares (0 to 1) are reached."""

    disk: float  # used share of the disk
    folder: float  # share of the disk that captured files use
    every: int  # delete every n-th file


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Total and used bytes of the disk, and the closed files with their sizes, oldest first."""

    total: int
    used: int
    files: tuple[tuple[Path, int], ...] = ()

    @property
    def ratio(self) -> float:
        """Used share of the disk, 0 to 1."""
        return self.used / self.total if self.total else 0.0

    @property
    def folder_ratio(self) -> float:
        """Share of the disk that captured files use, 0 to 1."""
        return sum(size for _, size in self.files) / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Deleted:
    """The result of `make_room`. `warn` means that the disk is nearly full, but not because of captured files."""

    usage: DiskUsage
    files: int = 0
    bytes: int = 0
    warn: bool = False


def disk_of(folder: Path) -> tuple[int, int]:
    """Return total and used bytes of the disk with `folder`, as df(1) does, without the space reserved for root."""
    disk = shutil.disk_usage(folder)
    return disk.used + disk.free, disk.used


Measure = Callable[[Path], tuple[int, int]]
"""Returns total and used bytes of a folder's disk."""


def chosen(files: Sequence[tuple[Path, int]], every: int) -> Sequence[tuple[Path, int]]:
    """Return every n-th file, beginning with the oldest. The remaining files still cover the whole period."""
    return files[::every]


def make_room(
    folder: Path, limits: Limits, measure: Measure = disk_of, held: Collection[Path] = frozenset()
) -> Deleted:
    """Delete captured files if the disk has reached `limits`, except those in `held`. Blocking. Raises OSError."""
    usage = usage_of(folder, limits.disk, measure)
    if usage.ratio < limits.disk:
        return Deleted(usage)
    if usage.folder_ratio < limits.folder:
        return Deleted(usage, warn=True)
    count = size = 0
    for path, length in chosen([file for file in usage.files if file[0] not in held], limits.every):
        try:
            path.unlink()
        except FileNotFoundError:
            continue
        count, size = count + 1, size + length
    return Deleted(usage, count, size)


def usage_of(folder: Path, minimum: float, measure: Measure = disk_of) -> DiskUsage:
    """Return the usage of the disk. Files are listed only if the used share is at least `minimum`."""
    total, used = measure(folder)
    if not total or used / total < minimum:
        return DiskUsage(total, used)
    files = [(path, path.stat().st_size) for path in capture_files(folder) if path.suffix == CLOSED]
    files.sort(key=lambda file: (file[0].name, file[0]))  # names are times
    return DiskUsage(total, used, tuple(files))
