"""Files that wait for upload, and files that the cloud has refused. Blocking."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from runtime.parts.data.files.files import make_folder
from runtime.parts.data.files.names import CLOSED, FAILED, OPEN, stem_of
from support.foreign import walk

PROGRESS: Final = ".progress"  # suffix of the progress file of a capture file that was acknowledged partly
NAME_MAX: Final = 255  # bytes of a file's name in Linux
REASON: Final = ".reason"  # suffix of the file with the reason why a file is in `failed`


@dataclass(frozen=True, slots=True)
class Waiting:
    """A file to be uploaded."""

    time: str  # of its creation or last change; sorts chronologically
    path: Path
    root: Path  # the folder that contains `failed`
    captured: bool  # whether it is a capture file

    @property
    def lane(self) -> Path:
        """The lane. Files of a lane are uploaded one by one, so that readings of a method arrive in order."""
        return self.path.parent if self.captured else self.path


def waiting(capture: Path, other_folders: Sequence[Path], now: float, minimum_age: float) -> list[Waiting]:
    """Return closed capture files below `capture` and `other_folders`, and other files in the latter, oldest first.

    Other files are included if they are not empty and were not changed for `minimum_age` seconds; `now` is in seconds
    since 1970. A change in the future counts as old: the clock was set back. Links are not followed. Missing folders
    count as empty. Raises OSError if a folder cannot be read.
    """
    recent = (now - minimum_age) * 1e9, (now + minimum_age) * 1e9
    files = {file.path: file for file in _below(capture, None)}
    for folder in other_folders:
        files.update((file.path, file) for file in _below(folder, recent) if file.path not in files)
    return sorted(files.values(), key=lambda file: (file.time, file.path))


def _below(root: Path, recent: tuple[float, float] | None) -> Iterator[Waiting]:
    for parent, folders, names in walk(root, _unless_missing):
        if parent == root and FAILED in folders:
            folders.remove(FAILED)
        for name in names:
            path = Path(parent, name)
            if name.endswith(CLOSED):
                yield Waiting(name.removesuffix(CLOSED), path, root, captured=True)
            elif name.endswith(PROGRESS):
                if path.with_suffix("").name not in names:  # its capture file no longer exists
                    path.unlink(missing_ok=True)
            elif recent is not None and not name.endswith(OPEN):
                changed = _changed(path)
                if changed is not None and not recent[0] <= changed <= recent[1]:
                    yield Waiting(stem_of(changed // 1000), path, root, captured=False)


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _changed(path: Path) -> int | None:
    """Return when a regular file was last changed, in nanoseconds since 1970; None if it is empty or not a file."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns if stat.S_ISREG(status.st_mode) and status.st_size else None


def shown(path: str | Path) -> str:
    """Return a path, or a part of it, as text, with escapes for bytes that are not UTF-8."""
    return os.fsencode(path).decode(errors="backslashreplace")


# ---- progress


def progress_of(path: Path) -> int:
    """Return the offset up to which a capture file was acknowledged; 0 if it is not known."""
    try:
        record = json.loads(_progress(path).read_bytes())
        offset = record["acknowledged"]
        if isinstance(offset, int) and record["size"] == path.stat().st_size:
            return offset
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return 0


def keep_progress(path: Path, offset: int) -> None:
    """Record that a file was acknowledged up to `offset`. If the record is lost, the file is sent again."""
    with suppress(OSError):
        _progress(path).write_text(json.dumps({"acknowledged": offset, "size": path.stat().st_size}))


def _progress(path: Path) -> Path:
    return path.with_name(path.name + PROGRESS)


def delete(path: Path) -> None:
    """Remove a file that the cloud has acknowledged, and its progress file."""
    path.unlink(missing_ok=True)
    _forget_progress(path)


def _forget_progress(path: Path) -> None:
    try:
        _progress(path).unlink(missing_ok=True)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:  # a file with this name cannot exist
            raise


# ---- refused files


def move_to_failed(file: Waiting, reason: str) -> Path:
    """Move a file to the same relative path below `failed`, write the reason next to it, and return its new path."""
    folder = (file.root / FAILED / file.path.relative_to(file.root)).parent
    make_folder(folder)
    target = next(path for number in count() if not (path := folder / _refused_name(file.path, number)).exists())
    target.with_name(target.name + REASON).write_text(reason + "\n", encoding="utf-8")
    os.rename(file.path, target)
    _forget_progress(file.path)
    return target


def _refused_name(path: Path, number: int) -> str:
    """Return the name of a refused file. It is cut if the name of the file with the reason would be too long."""
    mark = f"-{number}" if number else ""
    name = f"{path.stem}{mark}{path.suffix}"
    if len(os.fsencode(name + REASON)) > NAME_MAX:
        name = os.fsdecode(os.fsencode(path.name)[: NAME_MAX - len(mark + REASON)]) + mark
    return name


def reason_files(roots: Sequence[Path]) -> list[Path]:
    """Return the files with reasons of all refused files that still exist."""
    folders = (listed for root in roots for listed in walk(root / FAILED))
    return sorted(folder / name for folder, _, names in folders for name in names if name.endswith(REASON))
