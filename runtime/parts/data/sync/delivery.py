"""Upload of one file to the cloud, and its deletion afterwards."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from runtime.parts.data.files.disk import Disk
from runtime.parts.data.files.encode import DAT, EXTENSIONS
from runtime.parts.data.files.names import CLOSED
from runtime.parts.data.sync import waiting
from runtime.parts.data.sync.pieces import CaptureReader, Large
from runtime.parts.data.sync.upload import Uploader
from runtime.parts.data.sync.waiting import Waiting, shown
from schema import ErrorKind, MachineError
from support.files import open_file, read_at

TAG: Final = "tag="  # a folder with this prefix is a tag of the files in it; published
DATASET: Final = "dataset="  # likewise for a dataset
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
"""Errors because a resource of the computer is exhausted; they say nothing about the file."""

T = TypeVar("T")


class Unreadable(MachineError):
    """The file cannot be read; a retry is useless."""

    kind = ErrorKind.INVALID


class NotRemoved(MachineError):
    """The file was uploaded but cannot be removed. It will be uploaded again, which has no effect in the cloud."""

    kind = ErrorKind.PRECONDITION


class Changed(MachineError):
    """The file has changed since its upload began."""

    kind = ErrorKind.PRECONDITION


@dataclass(slots=True)
class Sent:
    """Amounts that the cloud has acknowledged."""

    files: int = 0
    readings: int = 0
    bytes: int = 0

    def add(self, other: Sent) -> None:
        """Add `other` to the amounts."""
        self.files += other.files
        self.readings += other.readings
        self.bytes += other.bytes


@dataclass(slots=True)
class Parcel:
    """The upload of one file. `sent` counts acknowledged amounts during the upload."""

    file: Waiting
    disk: Disk
    uploader: Uploader
    sent: Sent = field(default_factory=Sent)

    async def send(self) -> None:
        """Upload the file and delete it.

        Raises FileNotFoundError if it does not exist any more, Unreadable, Damaged, Changed, NotRemoved, and the errors
        of Uploader.
        """
        await (self._captured() if self.file.captured else self._other())
        self.sent.files += 1

    # ---- capture files

    async def _captured(self) -> None:
        path = self.file.path
        reader = await self._run(partial(CaptureReader, path))
        try:
            offset = max(reader.start, await self._run(partial(waiting.progress_of, path)))
            while (piece := await self._run(partial(reader.next, offset))) is not None:
                metadata = self.uploader.metadata(reader.header, name_of(path, reader.header, offset, reader.start))
                if isinstance(piece, Large):
                    read = partial(self._pieces, reader.read, piece.offset)
                    await self.uploader.large(metadata, piece.metadata, piece.size, read)
                    self.sent.readings += 1
                else:
                    await self.uploader.readings(metadata, piece.readings)
                    self.sent.readings += len(piece.readings)
                self.sent.bytes += piece.end - offset
                offset = piece.end
                if offset < reader.size:
                    await self._run(partial(waiting.keep_progress, path, offset))
        finally:
            self.disk.post(reader.close)
        await self._delete(partial(waiting.delete, path))

    async def _pieces(self, read: Callable[[int, int], bytes], begin: int, offset: int, size: int) -> bytes:
        piece = await self._run(partial(read, begin + offset, size))
        if not piece:
            raise Changed(f"{shown(self.file.path)} became shorter while it was uploaded")
        return piece

    # ---- other files

    async def _other(self) -> None:
        path = self.file.path
        opened = await self._run(partial(_Opened, path))
        try:
            metadata = self.uploader.file_metadata(
                shown(path.relative_to(self.file.root.parent)), shown(path.suffix), opened.changed, *labels_of(path)
            )
            await self.uploader.file(metadata, opened.size, partial(self._pieces, opened.read, 0))
            self.sent.bytes += opened.size
            if not await self._delete(opened.delete_unless_changed):
                raise Changed(f"{shown(path)} was changed while it was uploaded: it is uploaded again")
        finally:
            self.disk.post(opened.close)

    async def _run(self, function: Callable[[], T]) -> T:
        """Run `function` in the thread for files. Converts OSError, which would else look like a lost connection."""
        try:
            return await self.disk.run(function)
        except FileNotFoundError:
            raise
        except OSError as error:
            reason = f"{shown(self.file.path)} cannot be read: {error.strerror or error}"
            if error.errno in _EXHAUSTED:
                raise MachineError(reason, kind=ErrorKind.EXHAUSTED) from error
            raise Unreadable(reason) from error

    async def _delete(self, function: Callable[[], T]) -> T:
        try:
            return await self.disk.run(function)
        except OSError as error:
            raise NotRemoved(
                f"{shown(self.file.path)} was uploaded and cannot be removed: {error.strerror or error}",
                remedy="allow this user to write to its folder",
            ) from error


class Readable(Protocol):
    """The fields of a capture file's header that determine its name."""

    file_extension: str
    mime_type: str


def name_of(path: Path, header: Readable, offset: int, start: int) -> str:
    """Return the name of a file in the cloud: the local name with the extension of its content.

    Pieces after the first one have their offset in the name.
    """
    stem = path.name.removesuffix(CLOSED) + ("" if offset <= start else f"-{offset}")
    extension = header.file_extension if header.file_extension != DAT else EXTENSIONS.get(header.mime_type, CLOSED)
    return stem + (extension or CLOSED)


def labels_of(path: Path) -> tuple[list[str], list[str]]:
    """Return the tags and datasets in the folder names of a file."""
    parts = [shown(part) for part in path.parent.parts]
    return (
        [part.removeprefix(TAG) for part in parts if part.startswith(TAG)],
        [part.removeprefix(DATASET) for part in parts if part.startswith(DATASET)],
    )


class _Opened:
    """An open file that other programs may change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = open_file(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        self._before = os.fstat(self._fd)

    @property
    def size(self) -> int:
        return self._before.st_size

    @property
    def changed(self) -> float:
        return self._before.st_mtime

    def read(self, offset: int, size: int) -> bytes:
        return read_at(self._fd, size, offset)

    def delete_unless_changed(self) -> bool:
        try:
            now: Any = self._path.lstat()
        except FileNotFoundError:
            return True
        same = ("st_ino", "st_dev", "st_size", "st_mtime_ns")
        if any(getattr(now, name) != getattr(self._before, name) for name in same):
            return False
        waiting.delete(self._path)
        return True

    def close(self) -> None:
        os.close(self._fd)
