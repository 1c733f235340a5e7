"""The kernel's notices of changes in directories, as an awaitable: a descriptor, no thread, no polling. Linux only."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Final

import trio

# From linux/inotify.h
MODIFY: Final = 0x2
ATTRIB: Final = 0x4
CLOSE_WRITE: Final = 0x8
MOVED_FROM: Final = 0x40
MOVED_TO: Final = 0x80
CREATE: Final = 0x100
DELETE: Final = 0x200
DELETE_SELF: Final = 0x400
MOVE_SELF: Final = 0x800
_IGNORED: Final = 0x8000
_OVERFLOW: Final = 0x4000

ENTRIES: Final = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
"""Everything that can change what a path means or what it holds."""

ITSELF: Final = DELETE_SELF | MOVE_SELF
"""What can happen to the watched path itself."""

_HEADER = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_BUFFER: Final = 64 * 1024

_libc = ctypes.CDLL(None, use_errno=True)


class Inotify:
    """Watches paths. `close` releases the descriptor; waiting tasks then get trio.ClosedResourceError."""

    def __init__(self, entries: int = ENTRIES) -> None:
        """`entries`: which changes of what is in a watched directory are noticed."""
        self._entries = entries
        self._fd = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._paths: dict[int, Path] = {}

    def fileno(self) -> int:
        """The descriptor, for those who wait for it together with another; -1 when closed."""
        return self._fd

    def drain(self) -> None:
        """Forget the notices at hand."""
        for _ in self._read():
            pass

    def watch(self, paths: set[Path], way: Set[Path] = frozenset()) -> list[tuple[Path, OSError]]:
        """Watch exactly these from now on; return those that cannot be watched, and why. A missing one is left out.

        Of the directories on the `way` only their own moving or vanishing is noticed, not what happens in them.
        """
        failures = []
        wanted: dict[int, Path] = {}
        for path in sorted(paths | way):
            mask = self._entries if path in paths else ITSELF
            try:
                wanted[_checked(_libc.inotify_add_watch(self._fd, os.fsencode(path), mask))] = path
            except FileNotFoundError:
                continue
            except OSError as error:
                failures.append((path, error))
        for watch in self._paths.keys() - wanted.keys():
            _libc.inotify_rm_watch(self._fd, watch)  # may be gone already
        self._paths = wanted
        return failures

    async def wait(self, names: set[Path]) -> None:
        """Return after something happened to one of `names` or to a watched path itself; other notices are skipped."""
        while True:
            await trio.lowlevel.wait_readable(self._fd)
            notices = list(self._read())  # all of them: the kernel does not repeat any
            if any(path is None or path in names for path in notices):
                return

    def _read(self) -> Iterator[Path | None]:
        """Paths of the notices at hand; None for a watched path itself or an overflow, which may mean anything."""
        try:
            data = os.read(self._fd, _BUFFER)
        except BlockingIOError:
            return
        position = 0
        while position < len(data):
            watch, mask, _, length = _HEADER.unpack_from(data, position)
            position += _HEADER.size
            name = data[position : position + length].rstrip(b"\0")
            position += length
            if mask & _IGNORED and self._paths.pop(watch, None) is None:
                continue
            yield self._paths[watch] / os.fsdecode(name) if name and watch in self._paths else None

    def close(self) -> None:
        """Release the descriptor. May be called again."""
        if self._fd >= 0:
            trio.lowlevel.notify_closing(self._fd)
            os.close(self._fd)
            self._fd = -1


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        hint = {
            errno.ENOSPC: "too many watches: raise fs.inotify.max_user_watches",
            errno.EMFILE: "too many open files or users of inotify: raise `ulimit -n` or fs.inotify.max_user_instances",
        }.get(number, os.strerror(number))
        raise OSError(number, hint)
    return result
