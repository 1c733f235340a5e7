"""Device nodes: which device is behind one, and when it has vanished. Needs no udev, only the kernel's own /dev."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TypeAlias

from hal.errors import HalError
from support.inotify import DELETE, ITSELF, MOVED_FROM, Inotify

Identity: TypeAlias = "tuple[int, int, int]"
"""File system, inode and device number: a node that was removed and made again has another inode."""

_REMOVAL: Final = DELETE | MOVED_FROM | ITSELF  # not what writers to /dev/null and to terminals cause all the time


def identify(node: Path) -> Identity | None:
    """What is behind `node` now; None if there is no such node."""
    try:
        return identity(os.stat(node))
    except OSError:
        return None


def identity(found: os.stat_result) -> Identity:
    """Of what was asked by descriptor."""
    return found.st_dev, found.st_ino, found.st_rdev


async def vanished(node: Path, known: Identity) -> None:
    """Return when `node` is no longer what it was; at once if it is not. HalError if the kernel refuses to watch."""
    notices = Inotify(_REMOVAL)
    try:
        for path, error in notices.watch({node.parent}):
            raise HalError.of(error, str(path)) from error
        while identify(node) == known:
            await notices.wait({node})
    finally:
        notices.close()
