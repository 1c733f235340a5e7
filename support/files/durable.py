"""Files that survive a power cut: created or replaced as a whole, and written to the disk. Blocking."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    from support.files.durable_windows import is_link as is_link
    from support.files.durable_windows import make_link, move_over
    from support.files.durable_windows import open_file as open_file
    from support.files.durable_windows import read_at as read_at
    from support.files.durable_windows import read_link as read_link
    from support.files.durable_windows import set_mode as set_mode
    from support.files.durable_windows import sync_data as sync_data
    from support.files.durable_windows import sync_file as sync_file
    from support.files.durable_windows import sync_folder as sync_folder
    from support.files.durable_windows import write_at as write_at
else:
    set_mode = os.fchmod
    open_file = os.open  # on Windows, one that lets others rename and delete the open file
    read_at, write_at = os.pread, os.pwrite
    sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync

    def make_link(link: Path, target: str) -> None:
        """Create a symbolic link."""
        link.symlink_to(target)

    def read_link(link: Path) -> str:
        """Return the target of a link that `replace_link` made. FileNotFoundError; OSError if it is another file."""
        return os.readlink(link)

    def is_link(path: Path) -> bool:
        """Return whether a path is a link that `replace_link` may have made."""
        return path.is_symlink()

    def move_over(source: Path, target: Path) -> None:
        """Rename a file, replacing another one."""
        source.replace(target)

    def sync_file(path: Path) -> None:
        """Write the content of a file to the disk. Raises OSError."""
        _sync(path, os.O_RDONLY)

    def sync_folder(folder: Path) -> None:
        """Write the entries of a folder to the disk: which files it has, not their content. Raises OSError."""
        _sync(folder, os.O_RDONLY | os.O_DIRECTORY)

    def _sync(path: Path, flags: int) -> None:
        descriptor = os.open(path, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


PART: Final = ".part"
"""Ending of a file that will replace another one. A file that a power cut left is removed by the next replacement."""


def create_file(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Create a file with this content and these permissions, and write it to the disk.

    Only the owner can read it before it is complete. Raises FileExistsError and other OSErrors. Its entry in the folder
    is durable after `sync_folder`.
    """
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        if mode != 0o600:
            set_mode(file.fileno(), mode)
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file atomically: after a power cut, it has the former content or this one.

    Missing parents are created for the owner only. One process at a time may replace a file. Raises OSError, and the
    file is then as before.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(path.name + PART)
    part.unlink(missing_ok=True)  # left by an interrupted write, possibly with another mode
    try:
        create_file(part, content, mode)
        move_over(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def replace_link(link: Path, target: str | Path) -> None:
    """Make `link` a link to `target`, atomically and durably, as `read_link` reads it. Raises OSError.

    It is a symbolic link; on Windows a file that contains the target, because links need a privilege there.
    """
    part = link.with_name(link.name + PART)
    part.unlink(missing_ok=True)
    make_link(part, str(target))
    move_over(part, link)
    sync_folder(link.parent)


def allocate(descriptor: int, size: int) -> None:
    """Let a new file occupy `size` bytes of the disk. OSError (ENOSPC) if there is too little space."""
    reserve = getattr(os, "posix_fallocate", None)
    if reserve is not None:
        reserve(descriptor, 0, size)
    else:
        write_at(descriptor, bytes(size), 0)


def forget_cached(descriptor: int) -> None:
    """Let the memory that caches a file be used otherwise, where the system can be asked for that. Raises OSError."""
    advise = getattr(os, "posix_fadvise", None)
    if advise is not None:
        advise(descriptor, 0, 0, getattr(os, "POSIX_FADV_DONTNEED", 0))
