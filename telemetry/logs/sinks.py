"""Log sinks: a terminal, a pipe, a file with rotation. No sink raises or blocks the event loop.

Writing to a regular file goes to the page cache and takes microseconds, so it is done directly; messages are not synced
to the disk one by one. A pipe or terminal whose reader is stuck would block the process: messages that it cannot accept
at once are dropped and counted, and the count is written when it accepts text again.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from telemetry.logs.entry import ERROR, WARN, Entry, format_line
from telemetry.logs.rotation import DAY, first_day, rotate

MAX_FILE_BYTES: Final = 10 * 1024 * 1024
"""Size at which a log file is rotated."""

KEPT_FILES: Final = 7
"""Number of older files to keep in addition to the current one."""


class Notice(NamedTuple):
    """A message of a sink about its own state, returned once for each change."""

    level: int
    message: str


class Sink(Protocol):
    """Receives every message that is shown."""

    def write(self, entry: Entry) -> Notice | None:
        """Write a message. Must not raise or block; a returned notice is logged, in this sink too."""

    def close(self) -> None:
        """Release all resources; `write` is not called afterwards."""


if sys.platform == "win32":
    from telemetry.logs.console_windows import ConsoleSink as ConsoleSink
else:
    import select

    _ATOMIC: Final = select.PIPE_BUF  # a writable pipe accepts this many bytes without blocking

    class ConsoleSink:
        """Writes lines to a file descriptor, which stays open; in colour on a terminal, unless NO_COLOR is set."""

        def __init__(self, fd: int = 1) -> None:
            self._fd = fd
            self._colour = os.isatty(fd) and not os.environ.get("NO_COLOR")
            self._poll = select.poll()
            self._poll.register(fd, select.POLLOUT)
            self._broken_line = False
            self.dropped = 0
            """Number of messages lost since the last one that was written."""

        def write(self, entry: Entry) -> None:
            """Write a line, or count it as dropped if the descriptor is not writable."""
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
            notice = f"({self.dropped} messages were dropped because the output was blocked)\n" if self.dropped else ""
            return f"\n{notice}" if self._broken_line else notice

        def _put(self, data: bytes) -> bool:
            """Write data; return False if the descriptor is blocked or closed."""
            try:
                while data:
                    if not any(event & select.POLLOUT for _, event in self._poll.poll(0)):
                        return False
                    data = data[os.write(self._fd, data) :]
            except OSError:
                return False
            return True

        def close(self) -> None:
            """Do nothing: the descriptor belongs to the caller."""


class FileSink:
    """Writes lines to a file with mode 0600, which is rotated by size and at the first message of each day (UTC).

    Directories are not created: OSError if the file cannot be opened. If another program renames or deletes the file,
    it is opened again. While the file cannot be written, such as when the disk is full, messages are dropped and
    counted; the count is written to the file as soon as it is writable again.
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
        self._day: int | None = None  # day of the first line, in days since 1970
        self._broken_line = False
        self._trouble = ""
        self.dropped = 0
        """Number of messages lost since the last one that was written."""
        self._open()

    def write(self, entry: Entry) -> Notice | None:
        """Append a line; rotate first if the file would exceed its limit or is from an earlier day."""
        data = f"{format_line(entry)}\n".encode()
        rotation_failure = self._prepare(entry, len(data))
        try:
            if self._fd < 0:
                self._open()
            if self.dropped or self._broken_line:
                data = self._gap().encode() + data
            written = os.write(self._fd, data)
        except OSError as error:
            return self._count_lost(error.strerror or str(error))
        if self._day is None:
            self._day = int(entry.time // DAY)
        self._size += written
        self._broken_line = written < len(data)
        if self._broken_line:
            return self._count_lost("only a part of a line could be written")
        lost, self.dropped = self.dropped, 0
        if self._trouble and not rotation_failure:
            self._trouble = ""
            return Notice(WARN, f"the log file {self._path} can be written again; {lost} messages are missing in it")
        return rotation_failure

    def _prepare(self, entry: Entry, length: int) -> Notice | None:
        """Rotate if necessary; close the file, so that `_fd` is -1, if it must be opened again."""
        try:
            if self._fd >= 0 and self._moved():
                self.close()
            if not self._regular or not self._size or self._fd < 0:
                return None
            if self._size + length > self._limit or (self._day is not None and entry.time // DAY > self._day):
                rotate(self._path, entry.time, self._keep)
                self.close()
        except OSError as error:
            # Do not retry with each message.
            self._limit, self._day = self._size + self._max_bytes, int(entry.time // DAY)
            return Notice(ERROR, f"the log file {self._path} cannot be rotated: {error.strerror or error}")
        return None

    def _count_lost(self, reason: str) -> Notice | None:
        self.dropped += 1
        if self._trouble:
            return None
        self._trouble = reason
        return Notice(
            ERROR, f"the log file {self._path} cannot be written: {reason}; messages are lost until it can be written"
        )

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
            status = os.stat(self._path)
        except FileNotFoundError:
            return True
        return (status.st_dev, status.st_ino) != self._identity

    def _open(self) -> None:
        from support.files import open_file  # not needed by programs without a log file

        self._fd = open_file(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        status = os.fstat(self._fd)
        self._identity = (status.st_dev, status.st_ino)
        self._regular = stat.S_ISREG(status.st_mode)
        self._size, self._limit = status.st_size, self._max_bytes
        self._day = first_day(self._path) if self._regular and self._size else None
