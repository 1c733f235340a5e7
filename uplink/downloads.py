"""Resumable HTTP downloads of files whose SHA-256 is known: packages and releases."""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from schema import ErrorKind, MachineError
from support import Worker
from support.files import private
from uplink.http import Headers, error_text, headers_of, read_body, responding

if TYPE_CHECKING:
    import httpcore

RESERVE: Final = 32 * 1024 * 1024  # bytes of disk space that downloads leave free
WRITE_SIZE: Final = 1024 * 1024  # bytes that are collected before they are written
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_RANGE: Final = re.compile(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)")
_NO_RANGE: Final = re.compile(r"bytes \*/(\d{1,18})")

PARTS: Final = "part"  # the folder of incomplete downloads of packages
_CHUNK: Final = 1024 * 1024  # bytes that are read at once to compute a digest

DownloadProgress = Callable[[int], None]
"""Called with the number of bytes downloaded so far."""


class Stopped(Exception):
    """A long calculation was stopped on request."""


def part_of(root: Path, sha256: str) -> Path:
    """Return the path of an incomplete download of a package below `root`."""
    return root / PARTS / sha256


def digest_of(path: Path, stopped: Callable[[], bool]) -> str:
    """Return the SHA-256 of a file in hexadecimal; raise Stopped soon after `stopped` returns true."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            if stopped():
                raise Stopped
            digest.update(data)
    return digest.hexdigest()


class IncompleteDownload:
    """An incomplete download on the disk. All methods block: call them in a worker."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self) -> int:
        """Create the folder; return how many bytes have been downloaded."""
        private.make_folder(self.path.parent)
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def free_space(self) -> int:
        """Return how many bytes are free on the disk."""
        return shutil.disk_usage(self.path.parent).free

    def check_space(self, needed: int) -> None:
        """Raise MachineError (EXHAUSTED) unless RESERVE stays free after `needed` more bytes."""
        free = self.free_space()
        if free < needed + RESERVE:
            raise MachineError(
                f"{self.path.parent} has {free / 1024**2:.0f} MiB free, but the download needs "
                f"{needed / 1024**2:.0f} MiB and leaves {RESERVE / 1024**2:.0f} MiB free",
                kind=ErrorKind.EXHAUSTED,
                remedy="free space on this disk; the download is retried",
            )

    def write(self, data: bytes, at: int) -> None:
        """Truncate the file to `at` bytes and append `data`."""
        with self.path.open("r+b" if at else "wb") as file:
            file.truncate(at)
            file.seek(at)
            file.write(data)

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)

    def explain(self, error: OSError) -> MachineError:
        """Return the error for one of the disk. Deletes the file if the disk is full: other programs need the space."""
        if error.errno in _FULL:
            self.remove()
            return MachineError(
                f"the disk of {self.path.parent} is full",
                kind=ErrorKind.EXHAUSTED,
                remedy="free space on this disk; the download is retried",
            )
        return MachineError(
            f"{self.path} cannot be written: {error.strerror}",
            kind=ErrorKind.PRECONDITION,
            remedy="allow this user to write there",
        )

    def digest(self, stopped: Callable[[], bool]) -> str:
        """Return the SHA-256 of the downloaded bytes; raise Stopped soon after `stopped` returns true."""
        if not self.path.exists():
            return hashlib.sha256().hexdigest()
        return digest_of(self.path, stopped)


class DownloadSource(NamedTuple):
    """Where a file is downloaded from."""

    name: str  # the URL as errors show it, without what is secret in it
    get: Callable[[Headers], AbstractAsyncContextManager[httpcore.Response]]
    """Sends a request with additional headers, and yields its response, as `uplink.http.responding`."""
    etag: str = ""  # of the file, for `If-Range`; empty if the server may have another one for the same content

    @classmethod
    def of(cls, url: str, headers: Headers, tls: ssl.SSLContext | None = None, *, etag: str = "") -> DownloadSource:
        """Return the source for a URL."""
        return cls(url, lambda more: responding(url, [*headers, *more], tls), etag)


class Expected(NamedTuple):
    """What is known about a file before it is downloaded."""

    sha256: str
    size: int = 0  # bytes; 0 if it is not known
    limit: int = 1 << 40  # most bytes of a file whose size is not known

    @property
    def most(self) -> int:
        """The number of bytes that are downloaded at most."""
        return self.size or self.limit


async def download(
    source: DownloadSource, part: IncompleteDownload, worker: Worker, expected: Expected, *, progress: DownloadProgress
) -> None:
    """Download a file to `part`. When this returns, `part` is complete and its SHA-256 matches.

    What was received stays for the next attempt if this is cancelled or the connection fails.
    Raises MachineError: UNAVAILABLE if the connection fails or stalls, or the server answers with an error; EXHAUSTED
    if the disk is full; INVALID if the content is too long or has another SHA-256; PRECONDITION if the file cannot be
    written. After EXHAUSTED while writing and INVALID nothing is left on the disk.
    """
    finished = trio.Event()
    try:
        present = await worker.run(part.begin)
        if present > expected.most:
            await worker.run(part.remove)
            present = 0
        if not expected.size or present < expected.size:
            await worker.run(partial(part.check_space, max(expected.size - present, 0)))
            await _Transfer(source, part, worker, expected, progress).run(present)
        digest = await worker.run(partial(part.digest, finished.is_set))
    except OSError as error:
        raise await worker.run(partial(part.explain, error)) from error
    finally:
        finished.set()
    if digest != expected.sha256:
        await worker.run(part.remove)
        raise MachineError(
            f"{source.name} is not the file that was published: its SHA-256 is {digest}, not {expected.sha256}",
            kind=ErrorKind.INVALID,
            remedy="the download is retried; if the error persists, publish the file again under a new version",
        )


class _Transfer:
    """One request, and the writing of its response."""

    def __init__(
        self,
        source: DownloadSource,
        part: IncompleteDownload,
        worker: Worker,
        expected: Expected,
        progress: DownloadProgress,
    ) -> None:
        self._source, self._part, self._worker, self._expected = source, part, worker, expected
        self._progress = progress
        self._buffer = bytearray()
        self._at = 0  # bytes on the disk

    async def run(self, present: int) -> None:
        """Receive what is missing after the `present` bytes on the disk."""
        source, size = self._source, self._expected.size
        resume = [("range", f"bytes={present}-")] if present else []
        if present and source.etag:
            resume.append(("if-range", f'"{source.etag}"'))
        async with source.get(resume) as response:
            begin = await self._begin(response, present)
            if begin is None:
                return
            self._at = begin
            try:
                await read_body(source.name, response, self._take)
            finally:
                with trio.CancelScope(shield=True):  # what was received need not be downloaded again
                    await self._write()
        self._progress(self._at)
        if self._at < size:
            raise MachineError(
                f"{source.name} ended after {self._at} of {size} bytes",
                kind=ErrorKind.UNAVAILABLE,
                remedy="the download is resumed from there",
            )

    async def _begin(self, response: httpcore.Response, present: int) -> int | None:
        """Return the offset in the file at which the body begins; None if nothing is missing. MachineError."""
        headers, name = headers_of(response), self._source.name
        if response.status in (200, 206) and headers.get("content-encoding", "identity").lower() != "identity":
            raise _wrong(f"{name} was sent with the encoding {headers['content-encoding'][:40]!r}")
        if response.status == 200:
            await self._check_length(headers.get("content-length", ""), 0)
            return 0
        if response.status == 206:
            match = _RANGE.fullmatch(headers.get("content-range", ""))
            if match is not None and present and int(match[1]) == present:
                await self._check_length(headers.get("content-length", ""), present)
                return present
        if response.status == 416 and present:
            match = _NO_RANGE.fullmatch(headers.get("content-range", ""))
            if match is not None and int(match[1]) == present:
                return None
        if response.status in (206, 416):  # else the next request would have the same response
            await self._worker.run(self._part.remove)
        text = await error_text(response) if response.status >= 300 else ""
        raise MachineError(
            f"{name} answered with HTTP status {response.status}" + (f": {text}" if text else ""),
            kind=ErrorKind.UNAVAILABLE,
            remedy="the download is retried",
        )

    async def _check_length(self, length: str, at: int) -> None:
        """Refuse a body of the wrong length before any of it is received."""
        if not length.isdecimal() or len(length) > 18:
            return
        total, size = at + int(length), self._expected.size
        if total > self._expected.most or (size and total != size):
            await self._worker.run(self._part.remove)
            raise _wrong(f"{self._source.name} has {total} bytes, not {size or f'at most {self._expected.limit}'}")
        await self._worker.run(partial(self._part.check_space, int(length)))

    async def _take(self, piece: bytes) -> None:
        self._buffer += piece
        if self._at + len(self._buffer) > self._expected.most:
            self._buffer.clear()
            await self._worker.run(self._part.remove)
            self._at = 0
            raise _wrong(f"{self._source.name} is larger than {self._expected.most} bytes")
        self._progress(self._at + len(self._buffer))
        if len(self._buffer) >= WRITE_SIZE:
            await self._write()

    async def _write(self) -> None:
        """Move what was received to the disk."""
        if not self._buffer:
            return
        data = bytes(self._buffer)
        self._buffer.clear()
        await self._worker.run(partial(self._append, data, self._at))
        self._at += len(data)

    def _append(self, data: bytes, at: int) -> None:
        """Append to the file, and delete it if the disk becomes full: other programs need the space."""
        try:
            self._part.check_space(len(data))
        except MachineError:
            self._part.remove()
            raise
        self._part.write(data, at)


def _wrong(text: str) -> MachineError:
    return MachineError(text, kind=ErrorKind.INVALID, remedy="publish the file again under a new version")
