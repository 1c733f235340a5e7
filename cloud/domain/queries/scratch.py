"""Folders of running queries. What a process that was killed has left is removed by the next one that starts.

Each process has a folder of its own with a lock that the kernel releases when the process ends. Blocking, for a worker.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from support.files import lock_file, private, try_lock_file
from support.foreign import remove

_LOCK: Final = ".lock"


class Scratch:
    """Folders below `base`, while open; without it, below a temporary folder, which stays if the process is killed."""

    def __init__(self, base: Path | None) -> None:
        self._temporary = base is None
        self._base = Path() if base is None else base.absolute()
        self._own = Path()
        self._lock = -1

    def open(self) -> None:
        """Remove what processes that have ended left; create the folder of this one. OSError."""
        if self._temporary:
            self._base = Path(mkdtemp(prefix="machine-cloud-queries-"))
        self._own = self._base / secrets.token_hex(8)
        self._base.mkdir(mode=private.FOLDER, parents=True, exist_ok=True)
        self._lock = _locked(self._base / f"{self._own.name}{_LOCK}")
        for path in self._base.glob(f"*{_LOCK}"):
            if path.stem != self._own.name:
                _remove_unused(path)
        self._own.mkdir(mode=private.FOLDER)

    def close(self) -> None:
        """Remove the folder of this process."""
        remove(self._own)
        (self._base / f"{self._own.name}{_LOCK}").unlink(missing_ok=True)
        os.close(self._lock)
        if self._temporary:
            self._base.rmdir()

    def add(self) -> Path:
        """Return a new folder. OSError."""
        path = self._own / secrets.token_hex(8)
        path.mkdir(mode=private.FOLDER)
        return path

    def remove(self, paths: Iterable[Path]) -> None:
        """Remove folders with whatever queries have left in them."""
        for path in paths:
            remove(path)


def _locked(path: Path) -> int:
    """Return a descriptor of a new file, locked: no other process saw it unlocked and removed it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, private.FILE)
        lock_file(descriptor)
        with suppress(FileNotFoundError):
            if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)


def _remove_unused(lock: Path) -> None:
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if not try_lock_file(descriptor):
            return  # its process is running
        if remove(lock.with_suffix("")).complete:
            lock.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
