"""The console of Windows, which cannot tell whether it accepts text: a thread waits for it."""

from __future__ import annotations

import os
import sys

from support import ThreadedWriter
from telemetry.logs.entry import Entry, format_line

assert sys.platform == "win32"


class ConsoleSink:
    """Writes lines to a file descriptor, which stays open; in colour if it is a console and NO_COLOR is not set.

    Lines that its reader has not accepted are kept up to a limit; later ones are dropped and counted.
    """

    def __init__(self, fd: int = 1) -> None:
        self._colour = os.isatty(fd) and not os.environ.get("NO_COLOR")
        self._writer = ThreadedWriter(fd)
        self.dropped = 0
        """Number of messages lost since the last one that was written."""

    def write(self, entry: Entry) -> None:
        """Queue a line, or count it as dropped if too many are waiting."""
        text = format_line(entry, colour=self._colour) + "\n"
        if self.dropped:
            text = f"({self.dropped} messages were dropped because the output was blocked)\n{text}"
        if self._writer.put(text.encode()):
            self.dropped = 0
        else:
            self.dropped += 1

    def close(self) -> None:
        """Wait a second at most for the lines that are queued. The descriptor belongs to the caller."""
        self._writer.close()
