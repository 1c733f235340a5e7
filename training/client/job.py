"""A training job as an object: its events, its end, and its model."""

from __future__ import annotations

import hashlib
import os
import posixpath
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, Final, TextIO, cast

from schema import ErrorKind, MachineError
from support.foreign import Archive, BadArchiveError, Bounds, MemberKind, unpack_into
from training.client.display import Display
from training.client.errors import TrainingCanceled, TrainingFailed
from training.client.operations import PACKAGES, Operations
from training.client.records import EventsPage, Numbered, TrainingJob
from training.jobs.events import JobEvent, Log
from training.jobs.lifecycle import JobState
from training.jobs.report import MAX_SIZE, Report, read_report

PATIENCE: Final = 600.0  # seconds without an answer of the cloud, after which following a job fails
LAST_LINES: Final = 20  # lines of the log in TrainingFailed
BOUNDS: Final = Bounds(entries=100_000, size=8 * 1024**3, links=False)  # of a model
_PAUSES: Final = (0.5, 1.0, 2.0, 5.0, 10.0)  # seconds between attempts while the cloud does not answer


class Job:
    """A job of the cloud of `operations`. `position` is the number of the last event that an iteration has yielded."""

    def __init__(self, operations: Operations, id: str) -> None:  # noqa: A002 - name of the published parameter
        self.id = id
        self.position = 0
        self._operations = operations

    def __repr__(self) -> str:
        return f"Job({self.id!r})"

    async def get(self) -> TrainingJob:
        """Return what the cloud says about the job now."""
        return await self._operations.get_training_job(self.id)

    async def cancel(self) -> None:
        """Cancel the job; see `Operations.cancel_training_job`."""
        await self._operations.cancel_training_job(self.id)

    async def delete(self) -> None:
        """Delete the job, which must have ended; see `Operations.delete_completed_training_job`."""
        await self._operations.delete_completed_training_job(self.id)

    def events(self, after: int = 0, *, patience: float = PATIENCE) -> AsyncIterator[JobEvent]:
        """Yield the events of the job as they happen, until it has ended; see `numbered_events`."""
        return _Bare(self.numbered_events(after, patience=patience))

    def numbered_events(self, after: int = 0, *, patience: float = PATIENCE) -> AsyncIterator[Numbered]:
        """Yield the events with higher numbers than `after` as they happen, until the job has ended.

        After a lost connection it continues where it was: no event is lost or doubled. Raises MachineError, UNAVAILABLE
        if the cloud has not answered for `patience` seconds. Events are kept for 7 days after the end of a job. The
        iterator may be left at any time: it holds nothing open.
        """
        return _Events(self, after, patience)

    async def page(self, after: int = 0, *, patience: float = PATIENCE) -> EventsPage:
        """Return the next events after a number, none if none happened for some seconds; see `numbered_events`."""
        begin, failures = time.monotonic(), 0
        while True:
            try:
                return await self._operations.events_page(self.id, after)
            except MachineError as error:
                if error.kind is not ErrorKind.UNAVAILABLE or time.monotonic() - begin >= patience:
                    raise
            await self._operations.http.pause(_PAUSES[min(failures, len(_PAUSES) - 1)])
            failures += 1

    async def wait(self, *, show: bool = False, file: TextIO | None = None, patience: float = PATIENCE) -> Job:
        """Wait until the job has ended, and return it, so that `download` can follow.

        With `show`, its log and a progress bar are written to `file`, by default standard error; lines only if that is
        no terminal. Raises TrainingFailed with the reason and the last lines, and TrainingCanceled. If it is cancelled
        or interrupted, the job goes on.
        """
        output = file if file is not None else sys.stderr
        display = display_of(output) if show else None
        lines: deque[str] = deque(maxlen=LAST_LINES)
        after = 0
        try:
            while True:
                page = await self.page(after, patience=patience)
                after = page.last
                lines.extend(entry.event.message for entry in page.events if isinstance(entry.event, Log))
                if display is not None:
                    write_text(output, "".join(map(display.feed, page.events)))
                if page.ended:
                    break
        finally:
            if display is not None:
                write_text(output, display.close())
        if page.state is JobState.FAILED:
            raise TrainingFailed(self.id, page.reason, lines)
        if page.state is JobState.CANCELED:
            raise TrainingCanceled(self.id)
        return self

    async def download(self, folder: str | Path) -> list[Path]:
        """Unpack the model into `folder`, which is created, and return its files. Existing files are replaced.

        PRECONDITION if the job has not completed. The content is compared with the checksum of the registry.
        """
        async with self._archive() as archive:
            return await self._operations.http.work(partial(_unpacked, archive, Path(folder)))

    async def report(self) -> Report | None:
        """Return the report of the trainer about the model, None if it has written none; see `download`."""
        async with self._archive() as archive:
            return await self._operations.http.work(partial(_report_in, archive))

    @asynccontextmanager
    async def _archive(self) -> AsyncIterator[IO[bytes]]:
        """Provide the downloaded package of the model."""
        job = await self.get()
        if job.state is not JobState.COMPLETED:
            raise MachineError(
                f"the training job {self.id} is {job.state.value}, so it has no model",
                kind=ErrorKind.PRECONDITION,
                remedy="wait until it has completed",
            )
        package = await self._operations.call(
            PACKAGES, "get_package", id=job.model, version=job.model_version, include_url=True
        )
        with tempfile.TemporaryFile() as archive:
            digest = hashlib.sha256()
            async with aclosing(self._operations.http.get(package["url"])) as pieces:
                async for piece in pieces:
                    digest.update(piece)
                    archive.write(piece)
            if digest.hexdigest() != package["checksum"]:
                raise MachineError(
                    f"the download of {job.model} {job.model_version} does not have the SHA-256 of the registry",
                    kind=ErrorKind.UNAVAILABLE,
                    remedy="download it again",
                )
            archive.seek(0)
            yield archive


class _Events:
    """Iterator over the events of a job. Not a generator, which would have to be closed."""

    def __init__(self, job: Job, after: int, patience: float) -> None:
        self._job = job
        self._after = after
        self._patience = patience
        self._ended = False
        self._read: deque[Numbered] = deque()

    def __aiter__(self) -> _Events:
        return self

    async def __anext__(self) -> Numbered:
        while not self._read:
            if self._ended:
                raise StopAsyncIteration
            page = await self._job.page(self._after, patience=self._patience)
            self._read.extend(page.events)
            self._after, self._ended = page.last, page.ended
        entry = self._read.popleft()
        self._job.position = entry.number
        return entry


class _Bare:
    def __init__(self, numbered: AsyncIterator[Numbered]) -> None:
        self._numbered = numbered

    def __aiter__(self) -> _Bare:
        return self

    async def __anext__(self) -> JobEvent:
        return (await anext(self._numbered)).event


def display_of(output: TextIO) -> Display:
    """Return a display for an open file: with a bar if it is a terminal that can move the cursor."""
    terminal = output.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return Display(shutil.get_terminal_size().columns if terminal else 0)


def write_text(output: TextIO, text: str) -> None:
    """Write a text at once."""
    if text:
        output.write(text)
        output.flush()


def _unpacked(archive: IO[bytes], folder: Path) -> list[Path]:
    """Unpack regular files below `folder`; PRECONDITION for anything else, or for too much."""
    folder.mkdir(parents=True, exist_ok=True)
    with _explained():
        return [
            folder / name for name in unpack_into(Archive(cast(BinaryIO, archive), BOUNDS), folder.resolve(), BOUNDS)
        ]


def _report_in(archive: IO[bytes]) -> Report | None:
    """Read `report.json` of a packed model."""
    with _explained():
        content = Archive(cast(BinaryIO, archive), BOUNDS)
        for member in content:
            if posixpath.normpath(member.name) == b"report.json" and member.kind is MemberKind.FILE:
                return read_report(content.read(MAX_SIZE + 1))
    return None


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except BadArchiveError as error:
        raise MachineError(f"the model cannot be unpacked: {error}", kind=ErrorKind.PRECONDITION) from None
