"""One file's way to the cloud: from its first message to its deletion."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from runtime.data import sync_files
from runtime.data.disk import Disk
from runtime.data.encode import DAT, EXTENSIONS
from runtime.data.names import CLOSED
from runtime.data.sync_files import Waiting, shown
from runtime.data.sync_read import CaptureReader, Large
from runtime.data.sync_upload import Uploader
from schema.errors import ErrorKind, MachineError

TAG: Final = "tag="  # folders called so are tags of the files in them; published
DATASET: Final = "dataset="  # ... and datasets
_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
"""Of these nothing is known of the file: the computer is short of something."""

T = TypeVar("T")


class Unreadable(MachineError):
    """The file cannot be read: no other try will help."""

    kind = ErrorKind.INVALID


class Kept(MachineError):
    """The file was uploaded, and cannot be removed: it is uploaded again, which adds nothing."""

    kind = ErrorKind.PRECONDITION


class Changed(MachineError):
    """The file is not what it was when its upload began."""

    kind = ErrorKind.PRECONDITION


@dataclass(slots=True)
class Sent:
    """What the cloud has acknowledged."""

    files: int = 0
    readings: int = 0
    bytes: int = 0

    def add(self, other: Sent) -> None:
        """Count `other`, too."""
        self.files += other.files
        self.readings += other.readings
        self.bytes += other.bytes


@dataclass(slots=True)
class Parcel:
    """One file that is being uploaded; `sent` counts while it goes."""

    one: Waiting
    disk: Disk
    uploader: Uploader
    sent: Sent = field(default_factory=Sent)

    async def send(self) -> None:
        """Upload it and delete it. FileNotFoundError if it is gone; Unreadable, Damaged, and what Uploader raises."""
        await (self._captured() if self.one.captured else self._other())
        self.sent.files += 1

    # ---- capture files

    async def _captured(self) -> None:
        path = self.one.path
        reader = await self._run(partial(CaptureReader, path))
        try:
            offset = max(reader.start, await self._run(partial(sync_files.progress_of, path)))
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
                    await self._run(partial(sync_files.keep_progress, path, offset))
        finally:
            self.disk.post(reader.close)
        await self._delete(partial(sync_files.delete, path))

    async def _pieces(self, read: Callable[[int, int], bytes], begin: int, offset: int, size: int) -> bytes:
        piece = await self._run(partial(read, begin + offset, size))
        if not piece:
            raise Changed(f"{shown(self.one.path)} became shorter while it was uploaded")
        return piece

    # ---- other files

    async def _other(self) -> None:
        path = self.one.path
        file = await self._run(partial(_Opened, path))
        try:
            metadata = self.uploader.file_metadata(
                shown(path.relative_to(self.one.root.parent)), shown(path.suffix), file.changed, *labels_of(path)
            )
            await self.uploader.file(metadata, file.size, partial(self._pieces, file.read, 0))
            self.sent.bytes += file.size
            if not await self._delete(file.delete_unless_changed):
                raise Changed(f"{shown(path)} was changed while it was uploaded: it is uploaded again")
        finally:
            self.disk.post(file.close)

    async def _run(self, function: Callable[[], T]) -> T:
        """In the thread for files; what the disk refuses is told as such and not as a lost connection."""
        try:
            return await self.disk.run(function)
        except FileNotFoundError:
            raise
        except OSError as error:
            reason = f"{shown(self.one.path)} cannot be read: {error.strerror or error}"
            if error.errno in _SHORT:
                raise MachineError(reason, kind=ErrorKind.EXHAUSTED) from error
            raise Unreadable(reason) from error

    async def _delete(self, function: Callable[[], T]) -> T:
        try:
            return await self.disk.run(function)
        except OSError as error:
            raise Kept(
                f"{shown(self.one.path)} was uploaded and cannot be removed: {error.strerror or error}",
                remedy="let this user write to its folder",
            ) from error


class Readable(Protocol):
    """A header of a capture file, as far as names need it."""

    file_extension: str
    mime_type: str


def name_of(path: Path, header: Readable, offset: int, start: int) -> str:
    """What a file is called in the cloud: as here, with the extension of its content; later pieces by their offset."""
    stem = path.name.removesuffix(CLOSED) + ("" if offset <= start else f"-{offset}")
    extension = header.file_extension if header.file_extension != DAT else EXTENSIONS.get(header.mime_type, CLOSED)
    return stem + (extension or CLOSED)


def labels_of(path: Path) -> tuple[list[str], list[str]]:
    """Tags and datasets that the folders of a file say."""
    parts = [shown(part) for part in path.parent.parts]
    return (
        [part.removeprefix(TAG) for part in parts if part.startswith(TAG)],
        [part.removeprefix(DATASET) for part in parts if part.startswith(DATASET)],
    )


class _Opened:
    """A file that may be changed by others meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._before = os.fstat(self._fd)

    @property
    def size(self) -> int:
        return self._before.st_size

    @property
    def changed(self) -> float:
        return self._before.st_mtime

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self._fd, size, offset)

    def delete_unless_changed(self) -> bool:
        try:
            now: Any = self._path.lstat()
        except FileNotFoundError:
            return True
        same = ("st_ino", "st_dev", "st_size", "st_mtime_ns")
        if any(getattr(now, name) != getattr(self._before, name) for name in same):
            return False
        sync_files.delete(self._path)
        return True

    def close(self) -> None:
        os.close(self._fd)
