"""Removal on Windows: by paths, without recursion, and without following links and junctions."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from support.foreign.removed import Removal

assert sys.platform == "win32"

MOST_LEFT: Final = 20  # entries that cannot be removed, until a removal gives up
_LONG: Final = "\\\\?\\"  # before an absolute path: it may be longer than 260 characters


def remove_entry(removal: Removal, until: float) -> None:
    """Remove what exists at the path, until a time of the monotonic clock. Never raises OSError."""
    top = _LONG + os.path.abspath(removal.path)
    if not _is_folder(top):
        if os.path.lexists(top):
            _attempt(removal, Path(top).name, os.unlink, top)
        return
    trail = [top]
    entered: set[str] = set()
    while trail:
        if time.monotonic() > until:
            removal.out_of_time = True
            return
        if len(removal.left) >= MOST_LEFT:
            return
        folder = trail[-1]
        if folder in entered:  # everything in it was removed, or cannot be
            trail.pop()
            _attempt(removal, folder, os.rmdir, folder)
            continue
        entered.add(folder)
        try:
            with os.scandir(folder) as entries:
                names = [entry.path for entry in entries]
        except OSError as error:
            removal.left[folder] = error.strerror or str(error)
            continue
        for path in names:
            if _is_folder(path):
                trail.append(path)
            else:
                # A link to a folder, or a junction, is removed like a folder, and its target stays.
                _attempt(removal, path, os.rmdir if os.path.isdir(path) else os.unlink, path)


def _is_folder(path: str) -> bool:
    """Return whether a path is a folder, and neither a link nor a junction."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and not status.st_reparse_tag


def _attempt(removal: Removal, shown: str, function: Callable[[str], None], path: str) -> None:
    try:
        try:
            function(path)
        except PermissionError:
            os.chmod(path, stat.S_IWRITE)  # the attribute "read only" protects a file from removal
            function(path)
    except FileNotFoundError:
        pass  # another process was faster
    except OSError as error:
        removal.left[shown] = error.strerror or str(error)
    else:
        removal.entries += 1
