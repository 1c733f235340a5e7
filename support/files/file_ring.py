"""A ring of files: append to the newest, delete the oldest. All calls block on the local disk and may raise OSError."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from support.files import private
from support.files.durable import open_file, sync_data

SMALL: Final = 10
STAMP: Final = "%Y-%m-%dT%H-%M-%SZ"


class FileRing:
    """Files `<prefix><time><suffix>` in `folder`, which is created: at most `keep` files of about `limit` bytes.

    More files are kept if they are small, as after many restarts of a program, because the time before the restarts
    is the interesting one: up to `keep * SMALL` files with at most `keep * limit` bytes in total.
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
        """Return whether the file has reached its limit."""
        return self._size >= self._limit

    def open(self, now: datetime) -> Path:
        """Close the open file, if any, create a new one and delete old ones. Return the path of the new file."""
        self.close()
        private.make_folder(self.folder)
        while True:  # a second file within one second is named after the next second
            path = self.folder / f"{self._prefix}{now.astimezone(UTC).strftime(STAMP)}{self._suffix}"
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
                self._fd = open_file(path, flags, private.FILE)
                break
            except FileExistsError:
                now += timedelta(seconds=1)
        self._path, self._size = path, 0
        self._prune()
        return path

    def write(self, data: bytes) -> None:
        """Append all of `data`, or nothing: a partial write, as on a full disk, is truncated. OSError if it fails."""
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
        """Return a function that waits until all data written so far is on the disk. Call it once, in any thread."""
        fd = os.dup(self._fd)

        def wait() -> None:
            try:
                sync_data(fd)
            finally:
                os.close(fd)

        return wait

    def close(self) -> None:
        """Close the file. Delete it if it is empty, so that on a full disk empty files do not replace older ones."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        os.close(fd)
        if not self._size:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _prune(self) -> None:
        """Delete files above the limits, oldest first. The open file stays, even if the clock was set back."""
        files = [(path, path.stat().st_size) for path in self.folder.glob(f"{self._prefix}*{self._suffix}")]
        count, total = len(files), sum(size for _, size in files)
        for path, size in sorted(files):
            if count <= self._keep or (count <= SMALL * self._keep and total < self._keep * self._limit):
                return
            if path != self._path:
                with contextlib.suppress(OSError):
                    path.unlink()
                    count, total = count - 1, total - size
