"""Blobs as files in a folder."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from cloud.blobs import MOST_STAMP, PIECE, STAMP, Blob, ListedBlob, key_of, name_of, new_key
from schema import ErrorKind, MachineError
from support import Worker
from support.files import create_file, private, sync_folder

WRITE_BACK: Final = 32 * 1024 * 1024  # bytes to write before a sync, which bounds how long other users of the disk wait
T = TypeVar("T")


class FolderBlobs:
    """Files in a folder: `async with FolderBlobs(path).opened() as blobs`. See Blobs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._absolute = str(folder.absolute())
        self._worker = Worker("files of the cloud")

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[FolderBlobs]:
        """Create the folder if necessary; the store is usable while the context is open."""
        async with self._worker.opened():
            await self._run(self._prepare)
            yield self

    @property
    def where(self) -> str:
        """Folder or bucket, for messages."""
        return str(self._folder)

    def path(self, key: str) -> str:
        """Return the absolute path of a blob, whether or not it exists; None if blobs are no files of this computer."""
        return f"{self._absolute}/{name_of(key)}"

    async def stamp(self) -> bytes:
        """Return up to MOST_STAMP bytes of the file STAMP; empty if it does not exist."""

        def read() -> bytes:
            with suppress(FileNotFoundError), (self._folder / STAMP).open("rb") as file:
                return file.read(MOST_STAMP)
            return b""

        return await self._run(read)

    async def put_stamp(self, content: bytes, *, replace: bool) -> bool:
        """Write the file STAMP, durable on return."""
        return await self._run(lambda: write_stamp(self._folder, content, replace=replace))

    async def size(self, key: str) -> int | None:
        """Return the size of a blob in bytes; None if it does not exist."""

        def read_size() -> int | None:
            with suppress(FileNotFoundError):
                return self._path(key).stat().st_size
            return None

        return await self._run(read_size)

    async def put(self, pieces: AsyncIterable[bytes], key: str = "") -> Blob:
        """Store the concatenation of `pieces`; durable on return, and removed after an error."""
        key = key or new_key()
        writer = _FileWriter(self._path(key))
        digest, size = hashlib.sha256(), 0
        try:
            await self._run(writer.begin)
            async for piece in pieces:
                digest.update(piece)
                size += len(piece)
                await self._run(lambda data=piece: writer.write(data))  # type: ignore[misc]
            await self._run(writer.finish)
        except BaseException:
            self._worker.post(writer.abandon)  # runs after the thread's current call, even if that was cancelled
            raise
        return Blob(key, size, digest.hexdigest())

    async def read(self, key: str, start: int = 0) -> AsyncGenerator[bytes, None]:
        """Yield the content of a blob from byte `start` on; NOT_FOUND."""
        path = self._path(key)
        opened = ExitStack()
        files: list[BinaryIO] = []

        def following() -> bytes:
            if not files:
                files.append(opened.enter_context(path.open("rb")))
                files[0].seek(start)
            return files[0].read(PIECE)

        try:
            while piece := await self._run(following):
                yield piece
                if len(piece) < PIECE:
                    break  # the file has no more: most are read with a single call of the thread
        except MachineError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise MachineError("the file no longer exists", kind=ErrorKind.NOT_FOUND) from None
            raise
        finally:
            self._worker.post(opened.close)  # also closes a file that is opened after the reader was cancelled

    async def delete(self, key: str) -> None:
        """Delete a blob, if it exists."""
        await self._run(lambda: self._path(key).unlink(missing_ok=True))

    async def listed(self) -> AsyncGenerator[list[ListedBlob], None]:
        """Yield all blobs in batches, grouped by key prefix."""
        for folder in await self._run(lambda: sorted(self._folder.glob("??"))):
            page = await self._run(
                lambda folder=folder: [  # type: ignore[misc]
                    ListedBlob(path.name, size, written) for path, size, written in _files(folder) if _is_blob(path)
                ]
            )
            if page:
                yield page

    async def tidy(self, age: float) -> int:
        """Remove incomplete uploads that began more than `age` seconds ago; return their number.

        The age counts from the last write, so uploads in progress are not removed.
        """
        before = time.time() - age

        def remove() -> int:
            folders = self._folder.glob("??")
            incomplete = [
                path for folder in folders for path, _, written in _files(folder) if path.suffix and written < before
            ]
            for path in incomplete:
                path.unlink(missing_ok=True)
            return len(incomplete)

        return await self._run(remove)

    async def _run(self, function: Callable[[], T]) -> T:
        """Run `function` in the thread. Disk errors become UNAVAILABLE, because a retry may succeed."""
        try:
            return await self._worker.run(function)
        except OSError as error:
            raise MachineError(
                f"the folder of files {self._folder} cannot be used: {error.strerror or error}",
                kind=ErrorKind.UNAVAILABLE,
                remedy="check that its disk has free space and that this user may write to it",
            ) from error

    def _path(self, key: str) -> Path:
        return self._folder / name_of(key)

    def _prepare(self) -> None:
        self._folder.mkdir(mode=private.FOLDER, parents=True, exist_ok=True)
        if (self._folder / STAMP).exists() or not any(self._folder.iterdir()):
            private.close(self._folder)  # other folders may contain files for other users


def write_stamp(folder: Path, content: bytes, *, replace: bool) -> bool:
    """Write the STAMP of a store in a folder; see Blobs.put_stamp. Blocking."""
    target = folder / STAMP
    part = folder / f".{STAMP}.{new_key()}"
    try:
        create_file(part, content)
        if replace:
            part.replace(target)
        else:
            try:
                os.link(part, target)
            except FileExistsError:
                return False
            except OSError:  # a file system without hard links
                if target.exists():
                    return False
                part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(folder)
    return True


def _files(folder: Path) -> Iterator[tuple[Path, int, float]]:
    """Yield each file with its size and its last write time."""
    for path in folder.glob("*"):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # finished or deleted in the meantime
        yield path, status.st_size, status.st_mtime


def _is_blob(path: Path) -> bool:
    return key_of(f"{path.parent.name}/{path.name}") is not None


class _FileWriter:
    """A file that is written under a temporary name until it is complete. For the thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = path.with_suffix(f".{new_key()}")
        self._file: BinaryIO | None = None
        self._created: list[Path] = []
        self._unsynced = 0  # bytes that may not have reached the disk yet

    def begin(self) -> None:
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        self._created.append(self._temporary)
        descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, private.FILE)
        self._file = os.fdopen(descriptor, "wb")

    def write(self, data: bytes) -> None:
        assert self._file is not None
        self._file.write(data)
        self._unsynced += len(data)
        if self._unsynced >= WRITE_BACK:
            self._file.flush()
            os.fdatasync(self._file.fileno())
            self._unsynced = 0

    def finish(self) -> None:
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._created.append(self._path)
        self._temporary.rename(self._path)
        for folder in (self._path.parent, self._path.parent.parent):
            sync_folder(folder)

    def abandon(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # buffered data may not fit on the disk
                self._file.close()
        for path in self._created:
            path.unlink(missing_ok=True)
