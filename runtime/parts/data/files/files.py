"""Capture files on disk. Blocking, for use in a separate thread, by one caller at a time.

A file has the suffix `.prog` while it is written, and is renamed to `.capture` when it is closed, after its content was
synchronized to disk. Thus a `.capture` file is always complete. A `.prog` file is locked as long as its writer lives
(flock(2), which the kernel releases when the process dies), so that it is not mistaken for an abandoned file.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runtime.parts.data.files.names import CLOSED, FAILED, OPEN, stem_of
from support.files import lock_file, open_file, private, sync_data, sync_folder

PROBE: Final = ".probe"
PROBE_SIZE: Final = 4096  # bytes; empty files can be created even on a full disk
FOLDERS: Final = ("rdk_", FAILED)  # prefixes of the folders that capture creates
_NAMES: Final = 1_000_000  # names that are tried, a microsecond apart

Clock = Callable[[], int]
"""Nanoseconds since 1970 by the computer's clock, which may jump."""


class CaptureFile:
    """A file being written. `size` and `readings` count what was written completely."""

    def __init__(self, folder: Path, header: bytes, clock: Clock = time.time_ns) -> None:
        """Create the file with its header. If that fails, raise OSError and remove the file."""
        make_folder(folder)
        self.path, self._fd = _create(folder, clock() // 1000)
        self.size = 0
        self.readings = 0
        try:
            lock_file(self._fd)  # does not wait long: others hold the lock only to test it
            self._write(header)
        except OSError:
            self.discard()
            raise

    def append(self, data: bytes, readings: int) -> None:
        """Add whole readings. After an OSError, the file is unchanged."""
        self._write(data)
        self.readings += readings

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:
            os.ftruncate(self._fd, self.size)
            raise
        self.size += len(data)

    def commit(self) -> None:
        """Synchronize everything appended to disk. After an OSError, the caller must call `abandon`: see there."""
        sync_data(self._fd)

    def finish(self) -> Path:
        """Synchronize, rename and close the file; return its final path. After an OSError, the file is abandoned."""
        try:
            os.fsync(self._fd)
            target = self.path.with_suffix(CLOSED)
            os.rename(self.path, target)
            sync_folder(self.path.parent)
        finally:
            self.abandon()
        return target

    def abandon(self) -> None:
        """Close the file without renaming it. Its whole readings are recovered at the next start.

        Use this after a failed commit: the kernel reports the error only once and may have dropped the data, so a
        second commit would succeed without proving anything.
        """
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def discard(self) -> None:
        """Close and remove the file."""
        self.abandon()
        self.path.unlink(missing_ok=True)


def _create(folder: Path, microseconds: int) -> tuple[Path, int]:
    """Create a `.prog` file named after the time, or after the next free microsecond, because clocks may jump.

    Return its path and descriptor.
    """
    for offset in range(_NAMES):
        stem = stem_of(microseconds + offset)
        if (folder / f"{stem}{CLOSED}").exists():
            continue
        path = folder / f"{stem}{OPEN}"
        try:
            return path, open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, private.FILE)
        except FileExistsError:
            continue
    raise OSError(errno.EEXIST, "no unused file name", str(folder))


def make_folder(folder: Path) -> None:
    """Create a folder and missing parents, synchronized to disk and accessible only for this user."""
    missing = [part for part in (folder, *folder.parents) if not part.is_dir()]
    for part in reversed(missing):
        part.mkdir(mode=private.FOLDER, exist_ok=True)
        sync_folder(part.parent)


def probe(folder: Path) -> None:
    """Create the folder if necessary and test that it is writable. Raises OSError if not.

    Folders that earlier versions created in it are made inaccessible for other users. The folder itself is not changed,
    because it may contain other things.
    """
    make_folder(folder)
    for child in folder.iterdir():
        if child.name.startswith(FOLDERS) and child.is_dir():
            private.close(child)
    prove(folder)


def prove(folder: Path) -> None:
    """Write, synchronize and remove a small file in an existing folder. Raises OSError if that fails."""
    path = folder / f"{PROBE}.{os.getpid()}"
    try:
        with open(path, "wb") as file:
            file.write(bytes(PROBE_SIZE))
            file.flush()
            os.fsync(file.fileno())
    finally:
        path.unlink(missing_ok=True)
