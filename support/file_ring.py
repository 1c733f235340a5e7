"""A ring of files: the newest is written, the oldest is deleted. Blocking calls on the local disk; OSError passes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

SMALL: Final = 10
STAMP: Final = "%Y-%m-%dT%H-%M-%SZ"


class FileRing:
    """Files `<prefix><time><suffix>` in `folder`, which is made: at most `keep` of about `limit` bytes.

    Smaller ones, as a program leaves that is started over and over, are kept until they are SMALL times as many or
    take as much: what happened before such a time is what people look for.
    """

    def __init__(self, folder: Path, prefix: str, suffix: str, *, limit: int, keep: int) -> None:
        self.folder = folder
        self._prefix = prefix
        self._suffix = suffix
        self._limit = limit
        self._keep = keep
        self._fd = -1
        self._path = folder
        self._size = 0

    @property
    def is_open(self) -> bool:
        """Return whether there is a file to write to."""
        return self._fd >= 0

    @property
    def is_full(self) -> bool:
        """Whether the file has reached its limit."""
        return self._size >= self._limit

    def open(self, now: datetime) -> Path:
        """Close the file if there is one, begin a new one and delete what is too old."""
        self.close()
        self.folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        while True:  # two in one second are rare enough for the next one to be a little early
            path = self.folder / f"{self._prefix}{now.astimezone(UTC).strftime(STAMP)}{self._suffix}"
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
                self._fd = os.open(path, flags, 0o640)
                break
            except FileExistsError:
                now += timedelta(seconds=1)
        self._path, self._size = path, 0
        self._prune()
        return path

    def write(self, data: bytes) -> None:
        """Append all of it, or nothing: what a full disk cut off is taken back."""
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        self._size += written

    def sync(self) -> Callable[[], None]:
        """What waits until everything written so far is on the disk; may be called in another thread, once."""
        fd = os.dup(self._fd)

        def wait() -> None:
            try:
                os.fdatasync(fd)
            finally:
                os.close(fd)

        return wait

    def close(self) -> None:
        """Close the file; it stays unless it is empty, so that a full disk leaves the older files where they are."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        os.close(fd)
        if not self._size:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _prune(self) -> None:
        """Delete what is too much, oldest first; never the file in use, whatever a clock that was set back named it."""
        files = [(path, path.stat().st_size) for path in self.folder.glob(f"{self._prefix}*{self._suffix}")]
        count, total = len(files), sum(size for _, size in files)
        for path, size in sorted(files):
            if count <= self._keep or (count <= SMALL * self._keep and total < self._keep * self._limit):
                return
            if path != self._path:
                with contextlib.suppress(OSError):
                    path.unlink()
                    count, total = count - 1, total - size
