"""Identity of device nodes, and waiting for their removal. Uses only the kernel's /dev, not udev."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TypeAlias

from hal.errors import HalError
from support.files import DELETE, ITSELF, MOVED_FROM, Inotify

Identity: TypeAlias = "tuple[int, int, int]"
"""File system, inode and device number: a node that was removed and created again has another inode."""

_REMOVAL: Final = DELETE | MOVED_FROM | ITSELF  # without the events that writing to /dev/null and terminals causes


def identify(node: Path) -> Identity | None:
    """Return the current identity of `node`; None if there is no such node."""
    try:
        return identity(os.stat(node))
    except OSError:
        return None


def identity(status: os.stat_result) -> Identity:
    """Return the identity for the status of an open descriptor."""
    return status.st_dev, status.st_ino, status.st_rdev


async def vanished(node: Path, expected: Identity) -> None:
    """Wait until `node` no longer has the identity `expected`. HalError if the kernel cannot watch it."""
    inotify = Inotify(_REMOVAL)
    try:
        for path, error in inotify.watch({node.parent}):
            raise HalError.of(error, str(path)) from error
        while identify(node) == expected:
            await inotify.wait({node})
    finally:
        inotify.close()
