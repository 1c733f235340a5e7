"""Capture files on the disk. Blocking, meant for a thread of its own; one user at a time.

A file is written as `.prog` and becomes `.capture` when it is closed, after the disk has confirmed its content: what is
called `.capture` is whole, whatever happens. A `.prog` is locked while its writer lives (flock(2), given back by the
kernel when the process dies), so that nobody takes it for one that was left behind.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runtime.data.names import CLOSED, FAILED, OPEN, stem_of
from support import private

PROBE: Final = ".probe"
PROBE_SIZE: Final = 4096  # bytes: a full disk still makes empty files
FOLDERS: Final = ("rdk_", FAILED)  # how the names of folders begin that capture makes
_NAMES: Final = 1_000_000  # names that are tried one after the other, a microsecond apart

Clock = Callable[[], int]
"""Nanoseconds since 1970 by the computer's clock, which may jump."""


class CaptureFile:
    """One file being written. `size` and `readings` count what is in it for certain."""

    def __init__(self, folder: Path, header: bytes, clock: Clock = time.time_ns) -> None:
        """Create it with its header; OSError if that fails, and then nothing is left behind."""
        make_folder(folder)
        self.path, self._fd = _create(folder, clock() // 1000)
        self.size = 0
        self.readings = 0
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)  # at once: nobody else holds it for longer than a look
            self._write(header)
        except OSError:
            self.discard()
            raise

    def append(self, data: bytes, readings: int) -> None:
        """Add whole readings; after an OSError the file is as before."""
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
        """Return when everything appended is on the disk. After an OSError `abandon` it: see there."""
        os.fdatasync(self._fd)

    def finish(self) -> Path:
        """Bring it to the disk, give it its final name and close it; the path. After an OSError it is abandoned."""
        try:
            os.fsync(self._fd)
            target = self.path.with_suffix(CLOSED)
            os.rename(self.path, target)
            sync_folder(self.path.parent)
        finally:
            self.abandon()
        return target

    def abandon(self) -> None:
        """Close it as it is; what is whole in it is recovered at the next start.

        For a file whose commit has failed: the kernel reports that once and may have dropped the data, so a second try
        would succeed without proving anything.
        """
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def discard(self) -> None:
        """Close and remove it."""
        self.abandon()
        self.path.unlink(missing_ok=True)


def _create(folder: Path, microseconds: int) -> tuple[Path, int]:
    """A new `.prog` named after the time, or the next free microsecond: clocks jump, names stay unique."""
    for later in range(_NAMES):
        stem = stem_of(microseconds + later)
        if (folder / f"{stem}{CLOSED}").exists():
            continue
        path = folder / f"{stem}{OPEN}"
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, private.FILE)
        except FileExistsError:
            continue
    raise OSError(errno.EEXIST, "no free name", str(folder))


def make_folder(folder: Path) -> None:
    """Create it and what is missing above it, each known to the disk and open to this user only."""
    missing = [part for part in (folder, *folder.parents) if not part.is_dir()]
    for part in reversed(missing):
        part.mkdir(mode=private.FOLDER, exist_ok=True)
        sync_folder(part.parent)


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def probe(folder: Path) -> None:
    """Find out whether the folder can be written to, making it if necessary; OSError if not.

    What earlier versions have made in it is closed to other users; the folder itself may hold other things.
    """
    make_folder(folder)
    for child in folder.iterdir():
        if child.name.startswith(FOLDERS) and child.is_dir():
            private.close(child)
    prove(folder)


def prove(folder: Path) -> None:
    """Bring a small file in an existing folder to the disk, and remove it; OSError if the disk refuses."""
    path = folder / f"{PROBE}.{os.getpid()}"
    try:
        with open(path, "wb") as file:
            file.write(bytes(PROBE_SIZE))
            file.flush()
            os.fsync(file.fileno())
    finally:
        path.unlink(missing_ok=True)
