"""Removal of folders that may contain anything. Blocking; call it in a worker."""

from __future__ import annotations

import errno
import sys
import time
from math import inf
from pathlib import Path

from support.foreign.removed import Removal as Removal

if sys.platform == "win32":
    from support.foreign.removal_windows import remove_entry
else:
    from support.foreign.removal_at import remove_entry


def remove(path: Path, *, seconds: float = inf) -> Removal:
    """Remove a file, link or folder with all content, as far as permitted; return what is left and why.

    Nothing happens if it does not exist. Stops after about `seconds`; another call continues. Links are removed, not
    followed, except in the path to the parent. Folders without permissions are opened first (chmod 0700). Never raises
    OSError. If two processes remove the same folder at once, each may report nothing left before the other has ended.
    """
    removal = Removal(path)
    remove_entry(removal, time.monotonic() + seconds)
    return removal


def erase(path: Path) -> None:
    """Do what `remove` does, and raise OSError (ENOTEMPTY) if anything is left: for callers that need the place."""
    removal = remove(path)
    if not removal.complete:
        raise OSError(errno.ENOTEMPTY, str(removal), str(path))
