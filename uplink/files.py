"""The machine document from a file: read at the start and again whenever it changes.

The file may be written in place, replaced by a rename, deleted and created again, or reached through symbolic links
that are replaced, as in Kubernetes.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import trio

from schema import ConfigError, substitute
from schema.decoding import JSONSyntaxError
from schema.document import Decoded, decode_document
from support.files import Inotify, watched_places

if sys.platform == "win32":
    from support.files import open_file as _open_file
else:
    _open_file = os.open

SETTLE: Final = 0.05
"""Seconds without a further event after which a file counts as written. An editor's save takes a few milliseconds."""

SETTLE_AT_MOST: Final = 0.5
"""Seconds after the first event at which the file is read even if events continue; the reference server's delay."""

MAX_BYTES: Final = 16 * 1024 * 1024
"""The maximum size of a machine document."""


@dataclass(frozen=True, slots=True)
class FileReading:
    """The content of the file at one moment, or why it could not be read. Exactly one of the two is set."""

    data: bytes | None = None
    problem: ConfigError | None = None
    expand: bool = True
    """Whether to replace environment variables: in a local file, but not in a document from a cloud."""


class FileSource:
    """Follows one file."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.abspath(path))

    def read(self) -> FileReading:
        """Read the file now. Never raises."""
        try:
            # Opening must not block if the path is a FIFO or device.
            fd = _open_file(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return self._problem("is not a regular file", "use the path of a JSON file")
                with open(fd, "rb", closefd=False) as file:
                    data = file.read(MAX_BYTES + 1)
            finally:
                os.close(fd)
        except FileNotFoundError:
            return self._problem("does not exist", "create the file; it is read as soon as it exists")
        except PermissionError:
            return self._problem("cannot be read", "make it readable for the user that runs this program")
        except OSError as error:
            return self._problem(f"cannot be read: {error.strerror}", "")
        if len(data) > MAX_BYTES:
            return self._problem(f"is larger than {MAX_BYTES >> 20} MiB", "use the path of a machine document")
        return FileReading(data)

    def _problem(self, reason: str, remedy: str) -> FileReading:
        return FileReading(problem=ConfigError(str(self.path), reason, remedy=remedy))

    @asynccontextmanager
    async def readings(self) -> AsyncIterator[AsyncIterator[FileReading]]:
        """Yield a reading now and each time the content differs from the last reading.

        A slow reader gets the newest content and may miss intermediate ones. For a reading with a problem, keep using
        the previous document. If the kernel cannot watch the file, a reading reports that problem and the iteration
        ends. Leaving the context releases all resources.
        """
        async with aclosing(self._readings()) as readings:
            yield readings

    async def used(self, reading: FileReading) -> None:
        """Record that a reading was accepted, so that it can be cached for a start without the source.

        Does nothing: the file itself is kept.
        """

    async def _readings(self) -> AsyncGenerator[FileReading, None]:
        inotify = None
        try:
            try:
                inotify = Inotify()
            except OSError as error:
                yield self.read()
                yield self._unwatched(self.path, error)
                return
            last: FileReading | None = None
            while True:
                # Watches are set before the file is read, so that no change is missed.
                directories, names = watched_places(self.path)
                failures = inotify.watch(directories, {parent for path in directories for parent in path.parents[:-1]})
                reading = self.read()
                if not _same(reading, last):
                    last = reading
                    yield reading
                    for path, failure in failures:
                        yield self._unwatched(path, failure)
                await inotify.wait(names)
                with trio.move_on_after(SETTLE_AT_MOST):
                    await _quiet(inotify, names)
        finally:
            if inotify is not None:
                inotify.close()

    def _unwatched(self, path: Path, error: OSError) -> FileReading:
        reason = f"changes of the file are not detected: cannot watch {path}"
        return FileReading(
            problem=ConfigError(str(self.path), reason, remedy=error.strerror or "restart to read it again")
        )


async def _quiet(inotify: Inotify, names: set[Path]) -> None:
    """Wait until no event has occurred for SETTLE seconds."""
    while True:
        with trio.move_on_after(SETTLE) as pause:
            await inotify.wait(names)
        if pause.cancelled_caught:
            return


def _same(reading: FileReading, last: FileReading | None) -> bool:
    return last is not None and reading.data == last.data and str(reading.problem) == str(last.problem)


def decode_text(data: bytes, environment: Mapping[str, str]) -> Decoded:
    """Decode a document from a file after replacing its variables (`schema.substitution`). Never raises.

    If the text is not JSON, undefined variables are reported as problems, since they may be the reason.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return decode_document(data)
    text, missing = substitute(text, environment)
    decoded = decode_document(text.encode(errors="replace"))
    if any(isinstance(problem, JSONSyntaxError) for problem in decoded.problems):
        return replace(decoded, problems=(*missing, *decoded.problems))
    return replace(decoded, warnings=(*missing, *decoded.warnings))
