"""Check and restrict the permissions of files and folders with secrets. The calls block only briefly."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Final

OTHERS: Final = 0o077  # all permissions of group and others
FILE: Final = 0o600
FOLDER: Final = 0o700


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents, all only for this user; an existing folder keeps its permissions."""
    for folder in reversed((path, *path.parents)):
        if not folder.is_dir():
            folder.mkdir(mode=FOLDER, exist_ok=True)


if sys.platform == "win32":

    def is_open(path: Path) -> bool:
        """Return False: Windows has access lists instead, and the folders of a user are closed to other users."""
        return False

    def is_own(path: Path) -> bool:
        """Return True: see `is_open`."""
        return True

else:

    def is_open(path: Path) -> bool:
        """Return whether group or others have any permission for `path`; False if it does not exist."""
        try:
            return bool(stat.S_IMODE(path.stat().st_mode) & OTHERS)
        except FileNotFoundError:
            return False

    def is_own(path: Path) -> bool:
        """Return whether `path` belongs to this user and is not a shared folder like /tmp."""
        status = path.stat()
        return status.st_uid == os.geteuid() and not status.st_mode & stat.S_ISVTX


def close(path: Path) -> bool:
    """Remove all permissions of group and others for `path`; return whether there were any.

    Does nothing if `path` does not exist or does not belong to this user. OSError if the file system refuses.
    """
    if not is_open(path) or not is_own(path):
        return False
    path.chmod(stat.S_IMODE(path.stat().st_mode) & ~OTHERS)
    return True
