"""Walks by descriptors, on POSIX, at any depth and without following links. Blocking."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from support.foreign.removal_at import FOLDER


class FolderEntry(NamedTuple):
    """An entry of a folder. Use the name only with `folder`, and only until the next entry is requested."""

    folder: int  # descriptor
    name: str
    is_folder: bool
    depth: int  # 0: directly in the folder that is walked


class MovedError(OSError):
    """A folder was moved while it was walked: its parent is not the one that was left."""


def folder_entries(root: Path) -> Iterator[FolderEntry]:
    """Yield everything below a folder, the content of a folder after the folder itself.

    Works at any depth, also below the longest possible path, with three open descriptors. Raises OSError if a folder
    cannot be read, and MovedError.
    """
    folder = os.open(root, FOLDER)
    try:
        trail: list[tuple[tuple[int, int], list[str]]] = []  # identity of each open folder, and what is not yet entered
        while True:
            inner = []
            with os.scandir(folder) as listed:
                for entry in listed:
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if is_folder:
                        inner.append(entry.name)
                    yield FolderEntry(folder, entry.name, is_folder, len(trail))
            trail.append((_identity(folder), inner))
            while not trail[-1][1]:
                trail.pop()
                if not trail:
                    return
                folder = _replace(folder, "..")
                if _identity(folder) != trail[-1][0]:
                    raise MovedError(0, "a folder was moved while it was read", str(root))
            folder = _replace(folder, trail[-1][1].pop())
    finally:
        os.close(folder)


def _replace(folder: int, name: str) -> int:
    """Return a descriptor of a folder relative to `folder`, which is closed unless that fails."""
    other = os.open(name, FOLDER, dir_fd=folder)
    os.close(folder)
    return other


def _identity(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino


def flush_tree(root: Path) -> None:
    """Write all files and folders at and below `root` to the disk; raises OSError."""
    for entry in folder_entries(root):
        if entry.is_folder:
            _sync(entry.name, FOLDER, entry.folder)
            continue
        try:
            _sync(entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, entry.folder)
        except OSError as error:
            if error.errno != errno.ELOOP:  # a link: its folder is written
                raise
    _sync(str(root), FOLDER, None)


def _sync(name: str, flags: int, folder: int | None) -> None:
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
