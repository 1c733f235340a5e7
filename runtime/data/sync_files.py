"""Which files wait for the cloud, and what becomes of those that it refuses. Blocking."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runtime.data.files import make_folder
from runtime.data.names import CLOSED, FAILED, OPEN, stem_of

PROGRESS: Final = ".progress"  # beside a capture file of which a part was acknowledged
REASON: Final = ".reason"  # beside a file in `failed` that the cloud has refused, or that cannot be read


@dataclass(frozen=True, slots=True)
class Waiting:
    """A file that is to be uploaded."""

    time: str  # when it was begun, or changed last; later ones are greater
    path: Path
    root: Path  # the folder with `failed` in it
    captured: bool  # one of the published format

    @property
    def lane(self) -> Path:
        """Files of one lane go one after the other: readings of one method arrive in order."""
        return self.path.parent if self.captured else self.path


def waiting(capture: Path, others: Sequence[Path], now: float, untouched: float) -> list[Waiting]:
    """Every closed capture file below `capture` and `others`, and what else is below `others`, the oldest first.

    Of the latter only files that have something in them and were not changed for `untouched` seconds; `now` is in
    seconds since 1970. A change that is yet to come was made before the clock was set back. Links are not followed.
    OSError if a folder cannot be read; one that is not there holds nothing.
    """
    recent = (now - untouched) * 1e9, (now + untouched) * 1e9
    found = {one.path: one for one in _below(capture, None)}
    for other in others:
        found.update((one.path, one) for one in _below(other, recent) if one.path not in found)
    return sorted(found.values(), key=lambda one: (one.time, one.path))


def _below(root: Path, recent: tuple[float, float] | None) -> Iterator[Waiting]:
    for parent, folders, names in os.walk(root, onerror=_unless_missing):
        if Path(parent) == root and FAILED in folders:
            folders.remove(FAILED)
        for name in names:
            path = Path(parent, name)
            if name.endswith(CLOSED):
                yield Waiting(name.removesuffix(CLOSED), path, root, captured=True)
            elif name.endswith(PROGRESS):
                if path.with_suffix("").name not in names:  # what it belongs to is gone
                    path.unlink(missing_ok=True)
            elif recent is not None and not name.endswith(OPEN):
                changed = _changed(path)
                if changed is not None and not recent[0] <= changed <= recent[1]:
                    yield Waiting(stem_of(changed // 1000), path, root, captured=False)


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _changed(path: Path) -> int | None:
    """When a file with something in it was changed last, nanoseconds since 1970; None for anything else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns if stat.S_ISREG(found.st_mode) and found.st_size else None


def shown(path: str | Path) -> str:
    """A path, or a part of one, as text: with escapes for bytes that are no UTF-8."""
    return os.fsencode(path).decode(errors="backslashreplace")


# ---- progress


def progress_of(path: Path) -> int:
    """Up to which byte a capture file was acknowledged; 0 if nothing is known."""
    try:
        kept = json.loads(_progress(path).read_bytes())
        offset = kept["acknowledged"]
        if isinstance(offset, int) and kept["size"] == path.stat().st_size:
            return offset
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return 0


def keep_progress(path: Path, offset: int) -> None:
    """Note that a file was acknowledged up to `offset`. Lost with the power or on a full disk, it is sent once more."""
    with suppress(OSError):
        _progress(path).write_text(json.dumps({"acknowledged": offset, "size": path.stat().st_size}))


def _progress(path: Path) -> Path:
    return path.with_name(path.name + PROGRESS)


def delete(path: Path) -> None:
    """Remove what the cloud has acknowledged."""
    path.unlink(missing_ok=True)
    _progress(path).unlink(missing_ok=True)


# ---- what is refused


def put_aside(one: Waiting, reason: str) -> Path:
    """Move a file below `failed` of its folder, to the same relative place, and the reason beside it; where it is."""
    target = one.root / FAILED / one.path.relative_to(one.root)
    make_folder(target.parent)
    number = 1
    while target.exists():
        target = target.with_name(f"{one.path.stem}-{number}{one.path.suffix}")
        number += 1
    target.with_name(target.name + REASON).write_text(reason + "\n", encoding="utf-8")
    os.rename(one.path, target)
    _progress(one.path).unlink(missing_ok=True)
    return target


def put_aside_before(roots: Sequence[Path]) -> list[Path]:
    """Files that were put aside and are still there, by their reasons."""
    return sorted(path for root in roots for path in (root / FAILED).rglob(f"*{REASON}"))
