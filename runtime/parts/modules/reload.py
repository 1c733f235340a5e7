"""Restart of a module under development when a file in its folder is saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

import trio

from schema.document import Module
from support.files import CLOSE_WRITE, CREATE, DELETE, MOVED_FROM, MOVED_TO, Inotify
from support.foreign import walk

QUIET: Final = 0.3  # seconds without a change until a save counts as complete
LONGEST_WAIT: Final = 2.0  # seconds to wait for that at most, in case of continuous writes
MOST_FILES: Final = 5000  # further files are not watched
MOST_FOLDERS: Final = 1000
_SKIPPED_FOLDERS: Final = frozenset({"__pycache__", "node_modules", "venv", "env", "site-packages", "target", "build"})
_SKIPPED_ENDINGS: Final = (".pyc", ".pyo", ".log", ".tmp", ".swp", ".swx", ".sock", ".pid", "~")

Stamps = dict[Path, tuple[int, int, int]]
"""Time of modification in nanoseconds, size and inode, by watched file."""


class Reloader:
    """Watches the files of the module, and calls `restart` with a reason when some have changed."""

    def __init__(self, module: Module, restart: Callable[[str], None]) -> None:
        program = Path(module.executable_path).expanduser().absolute()
        root = module.env.get("VIAM_MODULE_ROOT")
        self._folder = Path(root).expanduser() if root else program.parent
        self._only = program if module.is_archive else None
        self._restart = restart

    async def run(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        """Watch until cancelled. Raises OSError if the folder cannot be watched."""
        notices = Inotify(CLOSE_WRITE | MOVED_TO | MOVED_FROM | CREATE | DELETE)
        try:
            seen = self._stamps(notices)
            task_status.started()
            while True:
                await notices.wait_any()
                await self._settle(notices)
                before, seen = seen, self._stamps(notices)
                changed = changes(before, seen)
                if changed:
                    names = ", ".join(str(path.relative_to(self._folder)) for path in changed[:3])
                    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
                    self._restart(f"{names}{more} changed")
        finally:
            notices.close()

    async def _settle(self, notices: Inotify) -> None:
        """Return after QUIET seconds without a change, or after LONGEST_WAIT seconds."""
        with trio.move_on_after(LONGEST_WAIT):
            while True:
                notices.drain()
                with trio.move_on_after(QUIET) as quiet:
                    await notices.wait_any()
                if quiet.cancelled_caught:
                    return

    def _stamps(self, notices: Inotify) -> Stamps:
        """Watch the folders that exist now, and return the stamps of their files."""
        if self._only is not None:
            notices.watch({self._folder})
            stamp = _stamp(self._only)
            return {self._only: stamp} if stamp is not None else {}
        folders: set[Path] = set()
        for folder, inner, _ in walk(self._folder):
            inner[:] = [name for name in inner if name not in _SKIPPED_FOLDERS and not name.startswith(".")]
            folders.add(folder)
            if len(folders) >= MOST_FOLDERS:
                break
        notices.watch(folders)
        files = (file for folder in sorted(folders) for file in _files(folder) if is_watched(file.name))
        stamps = ((file, _stamp(file)) for file in islice(files, MOST_FILES))
        return {file: stamp for file, stamp in stamps if stamp is not None}


def _files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_file()]
    except OSError:  # the folder has just been removed
        return []


def is_watched(name: str) -> bool:
    """Return whether a file name may belong to a program, not to temporary files of editors and programs."""
    return not name.startswith((".", "#")) and not name.endswith(_SKIPPED_ENDINGS)


def changes(before: Stamps, after: Stamps) -> list[Path]:
    """Return the files that were added, removed or rewritten, sorted."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
