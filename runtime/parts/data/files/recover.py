"""Recovery of files that a killed process has left open: keeps each whole reading exactly once. Blocking."""

from __future__ import annotations

import os
import shutil
from dataclasses import astuple, dataclass
from pathlib import Path

from runtime.parts.data.files.files import make_folder
from runtime.parts.data.files.names import CLOSED, FAILED, OPEN
from runtime.parts.data.files.read import Content, capture_files, parse
from support.files import open_file, sync_folder, try_lock_file, write_at


@dataclass(slots=True)
class Recovered:
    """The result of recovery at a start and after disk failures."""

    files: int = 0  # recovered files
    readings: int = 0  # in the recovered files
    cut_bytes: int = 0  # bytes of incomplete readings
    empty: int = 0  # removed files without a whole reading
    damaged: int = 0  # damaged files, which were copied to `failed`
    in_use: int = 0  # files that another process is writing

    def and_then(self, later: Recovered) -> Recovered:
        """Return the sums of both results."""
        return Recovered(*(ours + theirs for ours, theirs in zip(astuple(self), astuple(later), strict=True)))


def recover(folder: Path) -> Recovered:
    """Truncate every abandoned `.prog` file after its last whole reading, and close it. Raises OSError."""
    result = Recovered()
    for path in list(capture_files(folder)) if folder.is_dir() else []:
        if path.suffix == OPEN:
            _recover_file(folder, path, result)
    return result


def _recover_file(folder: Path, path: Path, result: Recovered) -> None:
    fd = open_file(path, os.O_RDWR)
    try:
        if not try_lock_file(fd):
            result.in_use += 1
            return
        data = _read_all(fd)
        content = parse(path, data)
        if content.damage is not None and not content.cut:
            copy_to_failed(folder, path)
            result.damaged += 1
        result.cut_bytes += len(data) - content.end if content.readings else 0
        if not content.readings:
            path.unlink()
            result.empty += 1
            return
        write_at(fd, data[: content.end], 0)  # the kernel may cache data that the disk refused, marked as written
        _close(fd, path, content)
        result.files += 1
        result.readings += len(content.readings)
    finally:
        os.close(fd)


def _read_all(fd: int) -> bytes:
    with open(fd, "rb", closefd=False) as file:
        return file.read()


def _close(fd: int, path: Path, content: Content) -> None:
    os.ftruncate(fd, content.end)
    os.fsync(fd)
    target = path.with_suffix(CLOSED)
    number = 1
    while target.exists():
        target = path.with_name(f"{path.stem}-{number}{CLOSED}")
        number += 1
    os.rename(path, target)
    sync_folder(path.parent)


def copy_to_failed(folder: Path, path: Path) -> Path:
    """Copy a damaged file to the same relative path below `failed`, and return the path of the copy."""
    target = folder / FAILED / path.relative_to(folder)
    make_folder(target.parent)
    shutil.copy2(path, target)
    return target
