"""Folders and files that only this user may read. Blocking calls, each of a moment."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

OTHERS: Final = 0o077  # what group and others may do
FILE: Final = 0o600
FOLDER: Final = 0o700


def is_open(path: Path) -> bool:
    """Whether other users may do anything with what is at `path`; False if nothing is there."""
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & OTHERS)
    except FileNotFoundError:
        return False


def is_own(path: Path) -> bool:
    """Whether what is at `path` belongs to this user alone: not to another one, and not shared as /tmp is."""
    found = path.stat()
    return found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX


def close(path: Path) -> bool:
    """Take from group and others what they may do with `path`; whether there was anything to take.

    Nothing is done with what is not there or does not belong to this user. OSError if the file system refuses.
    """
    if not is_open(path) or not is_own(path):
        return False
    path.chmod(stat.S_IMODE(path.stat().st_mode) & ~OTHERS)
    return True
