"""Large things as files below one folder."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from cloud.blobs import PIECE, Blob, Kept, key_of, name_of, new_key
from hal.worker import BusWorker
from schema.errors import ErrorKind, MachineError

WRITE_BACK: Final = 32 * 1024 * 1024  # bytes that wait for the disk: others wait no longer than for so many
T = TypeVar("T")


class FolderBlobs:
    """Files below one folder: `async with FolderBlobs(path).opened() as blobs`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._worker = BusWorker("files of the cloud")

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[FolderBlobs]:
        """Usable while the context is open."""
        async with self._worker.opened():
            await self._run(self._prepare)
            yield self

    async def put(self, pieces: AsyncIterable[bytes], key: str = "") -> Blob:
        """As Blobs."""
        key = key or new_key()
        writing = _Writing(self._path(key))
        digest, size = hashlib.sha256(), 0
        try:
            await self._run(writing.begin)
            async for piece in pieces:
                digest.update(piece)
                size += len(piece)
                await self._run(lambda data=piece: writing.write(data))  # type: ignore[misc]
            await self._run(writing.finish)
        except BaseException:
            self._worker.post(writing.abandon)  # after what the thread does now, though nobody waits for that
            raise
        return Blob(key, size, digest.hexdigest())

    async def read(self, key: str, start: int = 0) -> AsyncGenerator[bytes, None]:
        """As Blobs."""
        path = self._path(key)
        opened = ExitStack()
        try:
            file = await self._run(lambda: opened.enter_context(path.open("rb")))
            await self._run(lambda: file.seek(start))
            while piece := await self._run(lambda: file.read(PIECE)):
                yield piece
        except MachineError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise MachineError("the file is not there any more", kind=ErrorKind.NOT_FOUND) from None
            raise
        finally:
            self._worker.post(opened.close)  # also what the thread opens for a reader that was cancelled meanwhile

    async def delete(self, key: str) -> None:
        """As Blobs."""
        await self._run(lambda: self._path(key).unlink(missing_ok=True))

    async def listed(self) -> AsyncGenerator[list[Kept], None]:
        """As Blobs."""
        for folder in await self._run(lambda: sorted(self._folder.glob("??"))):
            page = await self._run(
                lambda folder=folder: [  # type: ignore[misc]
                    Kept(path.name, size, kept) for path, size, kept in _files(folder) if _is(path)
                ]
            )
            if page:
                yield page

    async def tidy(self, age: float) -> int:
        """As Blobs. What is still written is young: its time is that of the last piece."""
        before = time.time() - age

        def remove() -> int:
            folders = self._folder.glob("??")
            left = [path for one in folders for path, _, kept in _files(one) if path.suffix and kept < before]
            for path in left:
                path.unlink(missing_ok=True)
            return len(left)

        return await self._run(remove)

    async def _run(self, function: Callable[[], T]) -> T:
        """In the thread. What the disk refuses is no fault of the caller, who may try again: UNAVAILABLE."""
        try:
            return await self._worker.run(function)
        except OSError as error:
            raise MachineError(
                f"the folder of files {self._folder} cannot be used: {error.strerror or error}",
                kind=ErrorKind.UNAVAILABLE,
                remedy="see that its disk has room and that this user may write there",
            ) from error

    def _path(self, key: str) -> Path:
        return self._folder / name_of(key)

    def _prepare(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _files(folder: Path) -> Iterator[tuple[Path, int, float]]:
    """Each file with its size and when it was written last."""
    for path in folder.glob("*"):
        try:
            found = path.stat()
        except FileNotFoundError:
            continue  # finished or deleted meanwhile
        yield path, found.st_size, found.st_mtime


def _is(path: Path) -> bool:
    return key_of(f"{path.parent.name}/{path.name}") is not None


class _Writing:
    """A file that is written beside its place until it is whole. For the thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begun = path.with_suffix(f".{new_key()}")  # nobody else writes it
        self._file: BinaryIO | None = None
        self._remains: list[Path] = []
        self._waiting = 0  # bytes that may not be on the disk yet

    def begin(self) -> None:
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        self._remains.append(self._begun)
        self._file = self._begun.open("xb")

    def write(self, data: bytes) -> None:
        assert self._file is not None
        self._file.write(data)
        self._waiting += len(data)
        if self._waiting >= WRITE_BACK:
            self._file.flush()
            os.fdatasync(self._file.fileno())
            self._waiting = 0

    def finish(self) -> None:
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._remains.append(self._path)
        self._begun.rename(self._path)
        for folder in (self._path.parent, self._path.parent.parent):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def abandon(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # a full disk refuses what is still to be written
                self._file.close()
        for path in self._remains:
            path.unlink(missing_ok=True)
