"""Where lines go: a terminal, a pipe, a file with rotation. No sink ever raises or makes the event loop wait.

Writing to a regular file goes to the page cache and takes microseconds, so it is done in place; nothing is synced to
disk for each message. A pipe or terminal whose reader stands still would make the process wait: what it cannot take at
once is dropped and counted, and the count is written when it takes text again.
"""

from __future__ import annotations

import contextlib
import os
import select
from pathlib import Path
from typing import Final, Protocol

from telemetry.entry import Entry, format_line

MAX_FILE_BYTES: Final = 10 * 1024 * 1024
"""Size at which a log file is rotated."""

KEPT_FILES: Final = 5
"""Rotated files kept beside the current one: `machine.log.1` is the newest of them."""

_ATOMIC: Final = select.PIPE_BUF  # a writable pipe takes this many bytes without waiting


class Sink(Protocol):
    """Takes every message that is shown."""

    def write(self, entry: Entry) -> None:
        """Take one message. Must not raise or wait."""

    def close(self) -> None:
        """Release what the sink holds; nothing is written afterwards."""


class ConsoleSink:
    """Lines to a file descriptor, which stays open; coloured if it is a terminal and NO_COLOR is not set."""

    def __init__(self, fd: int = 1) -> None:
        self._fd = fd
        self._colour = os.isatty(fd) and not os.environ.get("NO_COLOR")
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._broken_line = False
        self.dropped = 0
        """Messages lost since the reader last took one."""

    def write(self, entry: Entry) -> None:
        """Write a line, or count it as dropped if the reader stands still."""
        text = format_line(entry, colour=self._colour) + "\n"
        if self.dropped or self._broken_line:
            text = f"{self._dropped_notice()}{text}"
        data = text.encode()
        for start in range(0, len(data), _ATOMIC):
            if not self._put(data[start : start + _ATOMIC]):
                self.dropped += 1
                self._broken_line = self._broken_line or start > 0
                return
        self.dropped, self._broken_line = 0, False

    def _dropped_notice(self) -> str:
        notice = f"({self.dropped} messages were dropped because nobody read them)\n" if self.dropped else ""
        return f"\n{notice}" if self._broken_line else notice

    def _put(self, data: bytes) -> bool:
        """False if the reader stands still or is gone."""
        try:
            while data:
                if not any(event & select.POLLOUT for _, event in self._poll.poll(0)):
                    return False
                data = data[os.write(self._fd, data) :]
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Leave the descriptor to its owner."""


class FileSink:
    """Lines to a file that is rotated by size; directories are not made. OSError if it cannot be opened.

    When the disk is full or the file cannot be written, messages are dropped and counted in `dropped`; writing goes on
    as soon as it works again.
    """

    def __init__(self, path: Path, *, max_bytes: int = MAX_FILE_BYTES, keep: int = KEPT_FILES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._fd = -1
        self._size = 0
        self.dropped = 0
        """Messages that could not be written."""
        self._open()

    def write(self, entry: Entry) -> None:
        """Append a line; rotate first if the file would grow beyond its limit."""
        data = (format_line(entry) + "\n").encode()
        try:
            if self._size and self._size + len(data) > self._max_bytes:
                self._rotate()
            if self._fd < 0:
                self._open()
            written = os.write(self._fd, data)
            self._size += written
            if written < len(data):
                self.dropped += 1
        except OSError:
            self.dropped += 1

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
        self._size = os.fstat(self._fd).st_size

    def _rotate(self) -> None:
        self.close()
        for number in range(self._keep, 0, -1):
            older = self._path if number == 1 else self._numbered(number - 1)
            with contextlib.suppress(FileNotFoundError):
                older.replace(self._numbered(number))
        if self._keep == 0:
            self._path.unlink(missing_ok=True)
        self._open()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
