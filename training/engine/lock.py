"""Locks by which a worker learns that another one has ended on this computer, with everything that it started.

A worker holds a lock file for as long as it exists, and so does the process around each of its programs. The kernel
releases a lock when the last process that holds it has ended, so a lock that is free proves that nothing of its worker
runs any more. It proves this only on the computer of that worker, since it started: the file names the boot, because
the folder may be on a disk that several computers use. All functions are blocking and raise OSError.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from support.files import lock_file, try_lock_file

SUFFIX: Final = ".lock"
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


def hold(folder: Path, worker: str) -> int:
    """Create the lock of a new worker; return the descriptor that holds it until it is closed."""
    hidden, path = folder / f".{worker}{SUFFIX}", path_of(folder, worker)
    descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        lock_file(descriptor, shared=True)
        os.write(descriptor, _BOOT.read_bytes())
        hidden.rename(path)  # only now, with its lock, can others see it
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def share(path: Path) -> int:
    """Return another descriptor that holds a lock, for a process that inherits it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        lock_file(descriptor, shared=True)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def ended(folder: Path) -> frozenset[str]:
    """Return the workers that have ended, with all their programs, since this computer started."""
    return frozenset(path.stem for path in _locks(folder) if _is_free(path) and not _is_stale(path))


def in_use(folder: Path, worker: str) -> bool:
    """Return whether another worker than `worker` has not ended."""
    return any(path.stem != worker and not _is_free(path) for path in _locks(folder))


def forget(folder: Path, workers: Iterable[str]) -> None:
    """Remove the locks of workers that have ended, and those of earlier boots."""
    for path in {*(path_of(folder, worker) for worker in workers), *filter(_is_stale, _locks(folder))}:
        path.unlink(missing_ok=True)


def path_of(folder: Path, worker: str) -> Path:
    """Return the lock file of a worker."""
    return folder / f"{worker}{SUFFIX}"


def _locks(folder: Path) -> list[Path]:
    return list(folder.glob(f"[!.]*{SUFFIX}"))


def _is_free(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return try_lock_file(descriptor)
    finally:
        os.close(descriptor)


def _is_stale(path: Path) -> bool:
    """Whether the lock is of an earlier boot, or of another computer: then its worker can only be waited for."""
    try:
        return path.read_bytes() != _BOOT.read_bytes()
    except FileNotFoundError:
        return True
