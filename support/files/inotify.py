"""Wait for changes in directories, without a thread and without polling: with Linux inotify, one descriptor for all.

On Windows, ReadDirectoryChangesW reports to Trio's completion port. The class there has the same name and methods,
except `fileno`; it reports all changes, whatever `entries` says.
"""

from __future__ import annotations

import sys
from typing import Final

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
"""All changes that can alter what a path refers to or what it contains."""

ITSELF: Final = DELETE_SELF | MOVE_SELF
"""Changes of the watched path itself: deleted or moved."""

if sys.platform == "win32":
    from support.files.inotify_windows import Inotify as Inotify
else:
    import ctypes
    import errno
    import os
    import struct
    from collections.abc import Iterator, Set
    from pathlib import Path

    import trio

    _HEADER = struct.Struct("iIII")  # watch, mask, cookie, length of the name
    _BUFFER: Final = 64 * 1024

    _libc = ctypes.CDLL(None, use_errno=True)

    class Inotify:
        """Watches paths. `close` releases the descriptor; tasks that wait then raise trio.ClosedResourceError."""

        def __init__(self, entries: int = ENTRIES) -> None:
            """Create a watcher. `entries` is the mask of changes to report for the content of watched directories."""
            self._entries = entries
            self._fd = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
            self._paths: dict[int, Path] = {}

        def fileno(self) -> int:
            """Return the descriptor, for callers that wait for several descriptors; -1 when closed."""
            return self._fd

        def drain(self) -> None:
            """Discard all pending events."""
            for _ in self._read():
                pass

        def watch(self, paths: set[Path], parents: Set[Path] = frozenset()) -> list[tuple[Path, OSError]]:
            """Watch exactly `paths` and `parents` from now on; return those that cannot be watched, with the reason.

            For `parents` only deleting and moving the directory itself is reported, not changes in it. Missing paths
            are ignored.
            """
            failures = []
            watched: dict[int, Path] = {}
            for path in sorted(paths | parents):
                mask = self._entries if path in paths else ITSELF
                try:
                    watched[_checked(_libc.inotify_add_watch(self._fd, os.fsencode(path), mask))] = path
                except FileNotFoundError:
                    continue
                except OSError as error:
                    failures.append((path, error))
            for watch in self._paths.keys() - watched.keys():
                _libc.inotify_rm_watch(self._fd, watch)  # fails if the kernel has removed it already
            self._paths = watched
            return failures

        async def wait_any(self) -> None:
            """Wait until there is an event, which stays pending until `wait` or `drain`."""
            await trio.lowlevel.wait_readable(self._fd)

        async def wait(self, names: set[Path]) -> None:
            """Wait until one of `names` or a watched path itself has changed; other events are discarded."""
            while True:
                await trio.lowlevel.wait_readable(self._fd)
                events = list(self._read())  # all of them: the kernel reports each event only once
                if any(path is None or path in names for path in events):
                    return

        def _read(self) -> Iterator[Path | None]:
            """Read the paths of the pending events; None for a watched path itself and for an overflow of the queue."""
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
            """Release the descriptor. May be called more than once."""
            if self._fd >= 0:
                trio.lowlevel.notify_closing(self._fd)
                os.close(self._fd)
                self._fd = -1

    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            hint = {
                errno.ENOSPC: "too many watches: raise fs.inotify.max_user_watches",
                errno.EMFILE: "too many open files or inotify instances: raise ulimit -n or "
                "fs.inotify.max_user_instances",
            }.get(number, os.strerror(number))
            raise OSError(number, hint)
        return result
