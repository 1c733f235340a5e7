"""Large things, kept outside the database: captured files, packages. A row of the database names each by its key.

Write the blob first, then the row; delete the row first, then the blob: what a crash leaves is a blob without a row,
which `cloud.sweep` removes later, never a row without a blob.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from hal.worker import BusWorker
from schema.errors import ErrorKind, MachineError

PIECE: Final = 1024 * 1024  # bytes read at once


@dataclass(frozen=True, slots=True)
class Blob:
    """What was kept. `digest` is the SHA-256 in hexadecimal digits, `size` in bytes."""

    key: str
    size: int
    digest: str


class Blobs(Protocol):
    """A place for large things. Any number of tasks may use it."""

    async def put(self, pieces: AsyncIterable[bytes]) -> Blob:
        """Keep what `pieces` are together: on the disk when this returns, nothing of it after an error."""
        ...

    def read(self, key: str, start: int = 0) -> AsyncIterator[bytes]:
        """The pieces of a blob from byte `start` on; NOT_FOUND. Close it with contextlib.aclosing."""
        ...

    async def delete(self, key: str) -> None:
        """Forget a blob; one that is not there is no error."""
        ...

    async def old(self, prefix: str, age: float) -> set[str]:
        """The keys that begin with `prefix`, two hexadecimal digits, of blobs kept more than `age` seconds ago."""
        ...


class FolderBlobs:
    """Files below one folder: `async with FolderBlobs(path).opened() as blobs`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._worker = BusWorker("files of the cloud")

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[FolderBlobs]:
        """Usable while the context is open."""
        async with self._worker.opened():
            await self._worker.run(self._prepare)
            yield self

    async def put(self, pieces: AsyncIterable[bytes]) -> Blob:
        """As Blobs."""
        key = secrets.token_hex(16)
        path = self._path(key)
        begun = path.with_suffix(".part")
        digest, size = hashlib.sha256(), 0
        file = await self._worker.run(lambda: _begin(begun))
        try:
            async for piece in pieces:
                digest.update(piece)
                size += len(piece)
                await self._worker.run(lambda data=piece: file.write(data))  # type: ignore[misc]
            await self._worker.run(lambda: _finish(file, begun, path))
        except BaseException:
            self._worker.post(lambda: _abandon(file, begun))
            raise
        return Blob(key, size, digest.hexdigest())

    async def read(self, key: str, start: int = 0) -> AsyncIterator[bytes]:
        """As Blobs."""
        path = self._path(key)
        try:
            file = await self._worker.run(lambda: path.open("rb"))
        except FileNotFoundError:
            raise MachineError("the file is not there any more", kind=ErrorKind.NOT_FOUND) from None
        try:
            await self._worker.run(lambda: file.seek(start))
            while piece := await self._worker.run(lambda: file.read(PIECE)):
                yield piece
        finally:
            self._worker.post(file.close)

    async def delete(self, key: str) -> None:
        """As Blobs."""
        await self._worker.run(lambda: self._path(key).unlink(missing_ok=True))

    async def old(self, prefix: str, age: float) -> set[str]:
        """As Blobs. What was half written and given up as long ago is removed by the way."""
        return await self._worker.run(lambda: self._old(self._folder / prefix, time.time() - age))

    async def keys(self) -> set[str]:
        """Every blob that is here."""
        return await self._worker.run(lambda: {path.name for path in self._folder.glob("??/*") if not path.suffix})

    def _path(self, key: str) -> Path:
        if not key.isalnum():
            raise ValueError(f"{key!r} is no key of a blob")
        return self._folder / key[:2] / key

    def _prepare(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _old(self, folder: Path, before: float) -> set[str]:
        found = set()
        for path in folder.glob("*"):
            try:
                if path.stat().st_mtime >= before:
                    continue
                if path.suffix:
                    path.unlink()
                else:
                    found.add(path.name)
            except FileNotFoundError:
                continue  # finished or deleted meanwhile
        return found


def _begin(path: Path) -> BinaryIO:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    return path.open("xb")


def _finish(file: BinaryIO, begun: Path, path: Path) -> None:
    file.flush()
    os.fsync(file.fileno())
    file.close()
    begun.rename(path)
    for folder in (path.parent, path.parent.parent):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _abandon(file: BinaryIO, begun: Path) -> None:
    file.close()
    begun.unlink(missing_ok=True)
