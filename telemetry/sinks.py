"""Where lines go: a terminal, a pipe, a file with rotation. No sink ever raises or makes the event loop wait.

Writing to a regular file goes to the page cache and takes microseconds, so it is done in place; nothing is synced to
disk for each message. A pipe or terminal whose reader stands still would make the process wait: what it cannot take at
once is dropped and counted, and the count is written when it takes text again.
"""

from __future__ import annotations

import os
import select
import stat
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from telemetry.entry import ERROR, WARN, Entry, format_line
from telemetry.rotation import DAY, first_day, set_aside

MAX_FILE_BYTES: Final = 10 * 1024 * 1024
"""Size at which a log file is rotated."""

KEPT_FILES: Final = 7
"""Older files kept beside the current one, whose names tell when they ended."""

_ATOMIC: Final = select.PIPE_BUF  # a writable pipe takes this many bytes without waiting


class Notice(NamedTuple):
    """What a sink has to say about itself, once for each thing that happens."""

    level: int
    message: str


class Sink(Protocol):
    """Takes every message that is shown."""

    def write(self, entry: Entry) -> Notice | None:
        """Take one message. Must not raise or wait; a notice is logged, in this sink too."""

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
    """Lines to a file, mode 0600, that is rotated by size and at the first message of a day (UTC).

    Directories are not made: OSError if the file cannot be opened. A file that was renamed or deleted by others is
    opened anew. When the disk is full or the file cannot be written, messages are dropped and counted; writing goes on
    as soon as it works again, and the file says how many are missing.
    """

    def __init__(self, path: Path, *, max_bytes: int = MAX_FILE_BYTES, keep: int = KEPT_FILES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._fd = -1
        self._identity = (0, 0)
        self._regular = True  # devices and pipes are not rotated
        self._size = 0
        self._limit = max_bytes
        self._day: int | None = None  # of its first line, since 1970
        self._broken_line = False
        self._trouble = ""
        self.dropped = 0
        """Messages lost since the last one that was written."""
        self._open()

    def write(self, entry: Entry) -> Notice | None:
        """Append a line; rotate first if the file would grow beyond its limit, or is of an earlier day."""
        data = f"{format_line(entry)}\n".encode()
        unrotated = self._prepare(entry, len(data))
        try:
            if self._fd < 0:
                self._open()
            if self.dropped or self._broken_line:
                data = self._gap().encode() + data
            written = os.write(self._fd, data)
        except OSError as error:
            return self._lost(error.strerror or str(error))
        if self._day is None:
            self._day = int(entry.time // DAY)
        self._size += written
        self._broken_line = written < len(data)
        if self._broken_line:
            return self._lost("only a part of a line could be written")
        lost, self.dropped = self.dropped, 0
        if self._trouble and not unrotated:
            self._trouble = ""
            return Notice(WARN, f"the log file {self._path} is written again; {lost} messages are missing in it")
        return unrotated

    def _prepare(self, entry: Entry, length: int) -> Notice | None:
        """Leave `_fd` at -1 if the file must be opened anew."""
        try:
            if self._fd >= 0 and self._moved():
                self.close()
            if not self._regular or not self._size or self._fd < 0:
                return None
            if self._size + length > self._limit or (self._day is not None and entry.time // DAY > self._day):
                set_aside(self._path, entry.time, self._keep)
                self.close()
        except OSError as error:
            self._limit, self._day = self._size + self._max_bytes, int(entry.time // DAY)  # not tried for each message
            return Notice(ERROR, f"the log file {self._path} cannot be rotated: {error.strerror or error}")
        return None

    def _lost(self, reason: str) -> Notice | None:
        self.dropped += 1
        if self._trouble:
            return None
        self._trouble = reason
        return Notice(ERROR, f"the log file {self._path} cannot be written: {reason}; messages are lost until it can")

    def _gap(self) -> str:
        end = "\n" if self._broken_line else ""
        return f"{end}({self.dropped} messages are missing here: {self._trouble})\n" if self.dropped else end

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _moved(self) -> bool:
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return True
        return (there.st_dev, there.st_ino) != self._identity

    def _open(self) -> None:
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        facts = os.fstat(self._fd)
        self._identity = (facts.st_dev, facts.st_ino)
        self._regular = stat.S_ISREG(facts.st_mode)
        self._size, self._limit = facts.st_size, self._max_bytes
        self._day = first_day(self._path) if self._regular and self._size else None
