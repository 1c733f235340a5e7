"""The machine document from a file: as it is, and again whenever it changes.

The file may be written in place, replaced by renaming another over it, deleted and made anew, or reached through
symbolic links that are swapped, as Kubernetes does it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import trio

from schema.errors import ConfigError
from schema.machine import Decoded, decode
from schema.substitution import substitute
from schema.syntax import JSONSyntaxError
from support.inotify import Inotify
from support.watched import places

SETTLE: Final = 0.05
"""Seconds without a further notice after which a file counts as written. An editor's save takes a few milliseconds."""

SETTLE_AT_MOST: Final = 0.5
"""Seconds after the first notice at which the file is read even if notices go on; the reference server's delay."""

MAX_BYTES: Final = 16 * 1024 * 1024
"""A larger file is refused: it is not a machine document."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the file held at one moment: its bytes, or why it could not be read. Exactly one of the two is set."""

    data: bytes | None = None
    problem: ConfigError | None = None
    expand: bool = True
    """Replace environment variables: in what this computer's owner wrote, not in what a cloud sends."""


class FileSource:
    """Follows one file."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.abspath(path))

    def read(self) -> Reading:
        """What the file holds now. Never raises."""
        try:
            # A FIFO or device in its place must not make the loop wait.
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return self._problem("is not a regular file", "name a JSON file")
                with open(fd, "rb", closefd=False) as file:
                    data = file.read(MAX_BYTES + 1)
            finally:
                os.close(fd)
        except FileNotFoundError:
            return self._problem("does not exist", "write the file; it is read as soon as it is there")
        except PermissionError:
            return self._problem("cannot be read", f"allow user {os.geteuid()} to read it")
        except OSError as error:
            return self._problem(f"cannot be read: {error.strerror}", "")
        if len(data) > MAX_BYTES:
            return self._problem(f"is larger than {MAX_BYTES >> 20} MiB", "name a machine document")
        return Reading(data)

    def _problem(self, reason: str, remedy: str) -> Reading:
        return Reading(problem=ConfigError(str(self.path), reason, remedy=remedy))

    @asynccontextmanager
    async def readings(self) -> AsyncIterator[AsyncIterator[Reading]]:
        """What the file holds now, and then each time it differs from what was last seen.

        A reader that is slow sees the newest state, not every one in between. Without data there is a problem: keep
        what you have. If the kernel refuses to watch the place, that is one more problem and the readings end.
        Everything is released when the context is left.
        """
        async with aclosing(self._readings()) as readings:
            yield readings

    async def used(self, reading: Reading) -> None:
        """As Source: the file stays where it is."""

    async def _readings(self) -> AsyncGenerator[Reading, None]:
        inotify = None
        try:
            try:
                inotify = Inotify()
            except OSError as error:
                yield self.read()
                yield self._unwatched(self.path, error)
                return
            last: Reading | None = None
            while True:
                # Watches are set before the file is read, so that no change falls between the two.
                directories, names = places(self.path)
                failures = inotify.watch(directories, {above for path in directories for above in path.parents[:-1]})
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

    def _unwatched(self, path: Path, error: OSError) -> Reading:
        reason = f"changes of the file are not noticed: cannot watch {path}"
        return Reading(problem=ConfigError(str(self.path), reason, remedy=error.strerror or "restart to read it again"))


async def _quiet(inotify: Inotify, names: set[Path]) -> None:
    """Return when nothing happened for SETTLE seconds."""
    while True:
        with trio.move_on_after(SETTLE) as pause:
            await inotify.wait(names)
        if pause.cancelled_caught:
            return


def _same(reading: Reading, last: Reading | None) -> bool:
    return last is not None and reading.data == last.data and str(reading.problem) == str(last.problem)


def decode_text(data: bytes, environment: Mapping[str, str]) -> Decoded:
    """Decode a document from a file after replacing its variables (`schema.substitution`). Never raises.

    If the text is not JSON, variables that are not set are problems, since they may be the reason.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return decode(data)
    text, missing = substitute(text, environment)
    found = decode(text.encode(errors="replace"))
    if any(isinstance(problem, JSONSyntaxError) for problem in found.problems):
        return replace(found, problems=(*missing, *found.problems))
    return replace(found, warnings=(*missing, *found.warnings))
