"""The folder of environments: a folder for each, which is complete or does not exist. Blocking; raises OSError.

An environment is made in a folder with another name and renamed. A job that uses it holds a shared lock of it, which
the kernel releases if the process is killed. What is not locked may be removed: unfinished folders at the start of a
cloud, and the environments that were used longest ago whenever all of them are too large.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from support.files import lock_file, try_lock_file
from support.foreign import remove

PYTHON: Final = "python"  # folder of the environment; the rest of its folder is not visible inside of jobs
LOCK: Final = "requirements.lock"
_SIZE: Final = "size"  # file with the bytes of the environment; its time is that of the last use
_UNFINISHED: Final = ".unfinished-"
_REMOVED: Final = ".removed-"
REMOVAL: Final = 30.0  # seconds for one folder
_log: structlog.stdlib.BoundLogger = structlog.get_logger("training.environments")


class Cache:
    """The environments below `folder`. Several processes may use the same folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def clean(self) -> None:
        """Remove what clouds that were killed have left."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self.folder.glob(".*-*"):
            self._remove(path)

    def unfinished(self) -> tuple[Path, int]:
        """Return a new folder in which to make an environment, and the descriptor that holds it."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"{_UNFINISHED}{secrets.token_hex(8)}"
        path.mkdir(mode=0o700)
        held = _hold(path)
        assert held is not None
        return path, held

    def use(self, key: str) -> int | None:
        """Return a descriptor that keeps an environment from being removed until it is closed; None: there is none."""
        path = self.folder / key
        held = _hold(path)  # waits at most for the renaming of one that is being removed
        if held is not None:
            os.utime(path / _SIZE)
        return held

    def finish(self, made: Path, key: str, lock: str, size: int) -> int:
        """Give the environment in the folder `made` its name; return what `use` returns."""
        folder = self.folder / f"{_UNFINISHED}{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        held = _hold(folder)
        assert held is not None
        try:
            made.rename(folder / PYTHON)
            (folder / LOCK).write_text(lock, encoding="utf-8")
            (folder / _SIZE).write_text(str(size))
            os.sync()  # otherwise the name could survive a power failure, and the content not
            folder.rename(self.folder / key)
        except OSError:
            self.remove(folder, held)
            if (same := self.use(key)) is not None:  # another process was faster
                return same
            raise
        return held

    def remove(self, unfinished: Path, held: int) -> None:
        """Remove a folder of `unfinished` with its content."""
        os.close(held)
        _discard(unfinished)

    def shrink(self, limit: int) -> int:
        """Remove unused environments, first those used longest ago, until all have `limit` bytes; return the bytes."""
        total = sum(size for _, size, _ in self._listed())
        for _, size, path in sorted(self._listed()):
            if total <= limit:
                break
            if self._remove(path):
                total -= size
        return total

    def _listed(self) -> Iterator[tuple[int, int, Path]]:
        """Yield the time of the last use, the bytes, and the folder of each environment."""
        for path in self.folder.glob("[!.]*"):
            with suppress(OSError, ValueError):
                yield (path / _SIZE).stat().st_mtime_ns, int((path / _SIZE).read_text()), path

    def _remove(self, path: Path) -> bool:
        held = _hold(path, alone=True)
        if held is None:
            return False
        try:
            removed = self.folder / f"{_REMOVED}{secrets.token_hex(8)}"
            path.rename(removed)
        finally:
            os.close(held)
        _discard(removed)
        return True


def _discard(path: Path) -> None:
    """Remove a folder in at most REMOVAL seconds; `clean` removes the rest later."""
    if not (removal := remove(path, seconds=REMOVAL)).complete:
        _log.warning("an environment is not removed completely", reason=str(removal))


def _hold(path: Path, *, alone: bool = False) -> int | None:
    """Return a descriptor that holds a lock of a folder; None if it does not exist, or is held by others.

    The lock is shared, which waits while another process holds it alone; or `alone`, which does not wait.
    """
    try:
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if alone and not try_lock_file(held):
            os.close(held)
            return None
        if not alone:
            lock_file(held, shared=True)
        if os.path.samestat(os.stat(path), os.fstat(held)):
            return held
    except FileNotFoundError:
        pass
    os.close(held)
    return None
