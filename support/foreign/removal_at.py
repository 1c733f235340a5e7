"""Removal by descriptors, on POSIX: nothing follows a link, and no path is ever concatenated.

Folders below the one to remove are moved up into it, so that it never has more than two levels: a folder of any depth
is removed with a few open descriptors and without recursion.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from support.foreign.removed import Removal

MOST_LEFT: Final = 20  # entries that cannot be removed, until a removal gives up
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH: Final = getattr(os, "O_PATH", os.O_RDONLY)  # macOS has no O_PATH
_BY_NAME: Final = _PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC  # needs no permission for the folder itself
_LOOK: Final = 64  # entries between two looks at the clock


def remove_entry(removal: Removal, until: float) -> None:
    """Remove what exists at the path, until a time of the monotonic clock. Never raises OSError."""
    try:
        parent = os.open(removal.path.parent, _PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        removal.left[removal.path.name] = _reason(error)
        return
    try:
        _Work(removal, until).remove(parent, removal.path.name)
    finally:
        os.close(parent)


class _Work:
    def __init__(self, removal: Removal, until: float) -> None:
        self._removal, self._until = removal, until
        self._prefix = f".removed-{secrets.token_hex(8)}-"  # of folders that were moved up
        self._moved = self._steps = 0

    def remove(self, parent: int, name: str) -> None:
        try:
            if not stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
                os.unlink(name, dir_fd=parent)
                self._removal.entries += 1
                return
            top = enter_folder(name, parent)
        except FileNotFoundError:
            return
        except OSError as error:
            self._removal.left[name] = _reason(error)
            return
        try:
            changes = -1
            while changes != (changes := self._removal.entries) and not self._over():
                self._empty(top)  # again: folders that are moved up during a scan may not be listed by it
        finally:
            os.close(top)
        if self._removal.complete:
            self._attempt(name, partial(os.rmdir, name, dir_fd=parent))

    def _empty(self, top: int) -> None:
        """Remove all entries of the folder to remove, except those that cannot be removed."""
        for entry in self._listed(top, "."):
            if self._over():
                return
            name = entry.name
            if name in self._removal.left:
                continue
            if not entry.is_dir(follow_symlinks=False):
                self._attempt(name, partial(os.unlink, name, dir_fd=top))
                continue
            self._flatten(name, top)
            if not self._over() and name not in self._removal.left:
                self._attempt(name, partial(os.rmdir, name, dir_fd=top))

    def _flatten(self, name: str, top: int) -> None:
        """Remove the files of a folder in `top`, and move its folders to `top`."""
        try:
            folder = enter_folder(name, top)
        except OSError as error:
            try:
                os.rmdir(name, dir_fd=top)  # possible if it is empty
            except OSError:
                self._removal.left[name] = _reason(error)
            return
        try:
            for entry in self._listed(folder, name):
                if self._over():
                    return
                shown = f"{name}/{entry.name}"  # not the name of an entry of `top`
                if entry.is_dir(follow_symlinks=False):
                    self._attempt(shown, partial(self._move_up, entry.name, folder, top))
                else:
                    self._attempt(shown, partial(os.unlink, entry.name, dir_fd=folder))
        finally:
            os.close(folder)

    def _listed(self, folder: int, shown: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                yield from entries
        except OSError as error:
            self._removal.left[shown] = _reason(error)

    def _attempt(self, shown: str, function: Callable[[], object]) -> None:
        try:
            function()
        except FileNotFoundError:
            pass  # another process was faster
        except OSError as error:
            self._removal.left[shown] = _reason(error)
        else:
            self._removal.entries += 1

    def _move_up(self, name: str, folder: int, top: int) -> None:
        self._moved += 1
        target = f"{self._prefix}{self._moved}"
        try:
            os.rename(name, target, src_dir_fd=folder, dst_dir_fd=top)
        except PermissionError:  # a folder must be writable to get another parent
            os.close(enter_folder(name, folder))
            os.rename(name, target, src_dir_fd=folder, dst_dir_fd=top)

    def _over(self) -> bool:
        """Return whether to stop: no time is left, or too much cannot be removed."""
        self._steps += 1
        if self._steps % _LOOK == 0 and time.monotonic() > self._until:
            self._removal.out_of_time = True
        return self._removal.out_of_time or len(self._removal.left) >= MOST_LEFT


def enter_folder(name: str, parent: int) -> int:
    """Open a folder, with all permissions for its owner if it belongs to this user; raises OSError.

    The permissions are changed through descriptors, so that no link is followed.
    """
    try:
        folder = os.open(name, FOLDER, dir_fd=parent)
    except PermissionError:
        handle = os.open(name, _BY_NAME, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IRWXU)  # fchmod refuses such a descriptor
            return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            os.close(handle)
    if os.fstat(folder).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        with suppress(OSError):  # of another user, for example: what is inside says whether that matters
            os.fchmod(folder, stat.S_IRWXU)
    return folder


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
