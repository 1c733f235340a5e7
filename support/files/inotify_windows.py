"""Wait for changes in directories with ReadDirectoryChangesW, which reports to Trio's completion port."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import warnings
from collections.abc import Iterator, Set
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import trio

assert sys.platform == "win32"

from support.windows import OPEN_EXISTING, OVERLAPPED, Overlapped, kernel32, last_error, open_handle

# From winnt.h, winbase.h and winerror.h
_LIST: Final = 0x1
_DIRECTORY: Final = 0x02000000  # FILE_FLAG_BACKUP_SEMANTICS, which opens directories
_CHANGES: Final = 0x1 | 0x2 | 0x8 | 0x10 | 0x40  # names of files and folders, size, last write, creation
_MISSING: Final = frozenset({2, 3, 267})  # ERROR_FILE_NOT_FOUND, _PATH_NOT_FOUND, _DIRECTORY (it is a file)
_HEADER: Final = struct.Struct("<III")  # offset of the next entry, action, length of the name
_BUFFER: Final = 64 * 1024


class _Folder:
    """A directory that is watched. Its request stays in memory until the system has answered it."""

    def __init__(self, path: Path, key: int) -> None:
        self.path = path
        self.request = Overlapped()
        self.buffer = ctypes.create_string_buffer(_BUFFER)
        self._handle = open_handle(path, _LIST, OPEN_EXISTING, _DIRECTORY | OVERLAPPED)
        try:
            port = ctypes.c_void_p(trio.lowlevel.current_iocp())
            if not kernel32.CreateIoCompletionPort(self._handle, port, ctypes.c_size_t(key), 0):
                raise last_error()
            self.ask()
        except OSError:
            self.close()
            raise

    @property
    def address(self) -> int:
        """The address of the request, by which the port names it."""
        return ctypes.addressof(self.request)

    def ask(self) -> None:
        """Request the next changes. The system collects those that occur between two requests. Raises OSError."""
        ctypes.memset(ctypes.byref(self.request), 0, ctypes.sizeof(self.request))
        if not kernel32.ReadDirectoryChangesW(
            self._handle, self.buffer, _BUFFER, False, _CHANGES, None, ctypes.byref(self.request), None
        ):
            raise last_error()

    def changed(self, count: int) -> Iterator[Path]:
        data, position = self.buffer.raw[:count], 0
        while position + _HEADER.size <= len(data):
            after, _, length = _HEADER.unpack_from(data, position)
            begin = position + _HEADER.size
            yield self.path / data[begin : begin + length].decode("utf-16-le", "replace")
            if not after:
                return
            position += after

    def close(self) -> None:
        """Close the directory; the system then answers the pending request."""
        kernel32.CloseHandle(self._handle)


class _Port:
    """A key of Trio's completion port, which may be given back when no request is pending."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", trio.TrioDeprecationWarning)  # of the queue, which Trio itself chooses
            entered = self._stack.enter_context(trio.lowlevel.monitor_completion_key())
        self.key: int = entered[0]
        self.queue: Any = entered[1]  # trio.lowlevel.UnboundedQueue
        self.pending: dict[int, _Folder] = {}

    def take(self) -> None:
        """Forget the requests that were answered after their directory was closed; give the key back after the last."""
        try:
            for event in self.queue.get_batch_nowait():
                self.pending.pop(_answer(event)[0], None)
        except trio.WouldBlock:
            pass
        if not self.pending:
            self._stack.close()


_closing: dict[int, list[_Port]] = {}
"""Ports with requests that are not answered yet, by Trio's completion port: of this run, or of one that has ended."""


class Inotify:
    """Watches directories. `close` releases them; tasks that wait then raise trio.ClosedResourceError."""

    def __init__(self, entries: int = 0) -> None:
        """Create a watcher. All changes are reported, whatever the mask `entries` is."""
        self._port = _Port()
        self._folders: dict[Path, _Folder] = {}
        self._events: list[Path | None] = []
        self._open = True

    def drain(self) -> None:
        """Discard all pending events."""
        self._collect()
        self._events.clear()

    def watch(self, paths: set[Path], parents: Set[Path] = frozenset()) -> list[tuple[Path, OSError]]:
        """Watch exactly the directories among `paths` from now on; return those that cannot be watched, and why.

        `parents` need no watch, because the system does not move a directory while one below it is open. Missing paths
        and files are ignored.
        """
        failures: list[tuple[Path, OSError]] = []
        for path in self._folders.keys() - paths:
            self._folders.pop(path).close()
        for path in sorted(paths - self._folders.keys()):
            if not os.path.isdir(path):
                continue
            try:
                folder = _Folder(path, self._port.key)
            except OSError as error:
                if error.winerror not in _MISSING:
                    failures.append((path, error))
                continue
            self._folders[path] = self._port.pending[folder.address] = folder
        return failures

    async def wait_any(self) -> None:
        """Wait until there is an event, which stays pending until `wait` or `drain`."""
        self._collect()
        while not self._events:
            self._take(await self._port.queue.get_batch())
            if not self._open:
                raise trio.ClosedResourceError
        await trio.lowlevel.checkpoint()

    async def wait(self, names: set[Path]) -> None:
        """Wait until one of `names` or a watched directory itself has changed; other events are discarded."""
        while True:
            await self.wait_any()
            events, self._events = self._events, []
            if any(path is None or path in names for path in events):
                return

    def _collect(self) -> None:
        try:
            self._take(self._port.queue.get_batch_nowait())
        except trio.WouldBlock:
            pass

    def _take(self, events: list[Any]) -> None:
        for event in events:
            address, count = _answer(event)
            folder = self._port.pending.pop(address, None)
            if folder is None or self._folders.get(folder.path) is not folder:
                continue  # it is not watched any more
            if folder.request.status or not count:
                self._events.append(None)  # too many changes, or the directory was deleted
            else:
                self._events.extend(folder.changed(count))
            try:
                folder.ask()
            except OSError:
                self._folders.pop(folder.path).close()
                self._events.append(None)
            else:
                self._port.pending[folder.address] = folder

    def close(self) -> None:
        """Release the directories. May be called more than once."""
        if not self._open:
            return
        self._open = False
        for folder in self._folders.values():
            folder.close()
        self._folders.clear()
        run = trio.lowlevel.current_iocp()
        waiting = _closing.setdefault(run, [])
        waiting.append(self._port)
        for port in waiting:
            port.take()
        _closing[run] = [port for port in waiting if port.pending]
        self._port.queue.put_nowait(None)  # wakes tasks that wait


def _answer(event: Any) -> tuple[int, int]:
    """Return the address of the request that was answered, and the number of bytes; zeros for the end of a watcher."""
    if event is None:
        return 0, 0
    return event.lpOverlapped, event.dwNumberOfBytesTransferred
