"""Walk through folders that may contain anything, without recursion, and without following links. Blocking."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

OnError = Callable[[OSError], object]


def walk(root: Path, onerror: OnError | None = None) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield each folder at and below `root`, with the names of its folders and of everything else, from the top down.

    The caller may remove names of folders, which are not entered then, or sort them. A folder that cannot be read, for
    example because its path would be too long, is passed to `onerror` as OSError, and skipped.
    """
    pending = [root]
    while pending:
        folder = pending.pop()
        folders: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(folder) as listed:
                for entry in listed:
                    (folders if _is_dir(entry) else others).append(entry.name)
        except OSError as error:
            if onerror is not None:
                onerror(error)
            continue
        yield folder, folders, others
        pending += [path for name in reversed(folders) if not os.path.islink(path := folder / name)]


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False
