"""Resumable HTTP downloads of packages, verified by SHA-256."""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from schema.errors import ErrorKind, MachineError
from support.gather import unwrap
from support.worker import Worker

if TYPE_CHECKING:
    import httpcore

STALL: Final = 30.0  # seconds without a byte after which a connection counts as lost
RESERVE: Final = 32 * 1024 * 1024  # bytes of disk space that downloads leave free
WRITE_SIZE: Final = 1024 * 1024  # bytes that are collected before they are written
MAX_ERROR_TEXT: Final = 400  # bytes of an error response that are shown
_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")

PARTS: Final = "part"  # the folder of incomplete downloads
_CHUNK: Final = 1024 * 1024  # bytes that are read at once to compute a digest

Headers = Sequence[tuple[str, str]]
Progress = Callable[[int], None]
"""Called with the number of bytes downloaded so far."""


class Stopped(Exception):
    """A long calculation was stopped on request."""


def part_of(root: Path, sha256: str) -> Path:
    """Return the path of an incomplete download below `root`."""
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


class Part:
    """An incomplete download on the disk. All methods block: call them in a worker."""

    def __init__(self, root: Path, sha256: str) -> None:
        self.path = part_of(root, sha256)

    def begin(self) -> int:
        """Create the folder; return how many bytes have been downloaded."""
        self.path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def free_space(self) -> int:
        """Return how many bytes are free on the disk."""
        return shutil.disk_usage(self.path.parent).free

    def write(self, data: bytes, at: int) -> None:
        """Truncate the file to `at` bytes and append `data`."""
        with self.path.open("r+b" if at else "wb") as file:
            file.truncate(at)
            file.seek(at)
            file.write(data)

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)

    def digest(self, stopped: Callable[[], bool]) -> str:
        """Return the SHA-256 of the downloaded bytes; raise Stopped soon after `stopped` returns true."""
        if not self.path.exists():
            return hashlib.sha256().hexdigest()
        return digest_of(self.path, stopped)


async def download(
    url: str,
    headers: Headers,
    part: Part,
    worker: Worker,
    *,
    size: int,
    sha256: str,
    progress: Progress,
    tls: ssl.SSLContext | None = None,
) -> None:
    """Download `url` to `part`. When this returns, `part` is complete and its SHA-256 matches.

    `tls` says which authorities to trust, by default those of the system.
    Raises MachineError: UNAVAILABLE if the connection fails or stalls; the bytes received so far are kept for the next
    attempt. EXHAUSTED if the disk is full. INTERNAL if the data differs from that in the registry; it is deleted then.
    """
    finished = trio.Event()
    try:
        present = await worker.run(part.begin)
        if size and present > size:
            await worker.run(part.remove)
            present = 0
        if not size or present < size:
            await _check_space(part, worker, size - present)
            await _fetch(_Source(url, headers, tls), part, worker, present, size, sha256, progress)
        digest = await worker.run(lambda: part.digest(finished.is_set))
    except OSError as error:
        raise _disk(error, part) from error
    finally:
        finished.set()
    if digest != sha256:
        await worker.run(part.remove)
        raise MachineError(
            f"the download from {url} differs from the package in the registry: its SHA-256 is {digest}, not {sha256}",
            kind=ErrorKind.INTERNAL,
            remedy="the download is retried; if the error persists, upload the package again under a new version",
        )


async def _check_space(part: Part, worker: Worker, needed: int) -> None:
    free = await worker.run(part.free_space)
    if free < needed + RESERVE:
        raise MachineError(
            f"{part.path.parent} has {free / 1024**2:.0f} MiB free, but the download needs {needed / 1024**2:.0f} MiB",
            kind=ErrorKind.EXHAUSTED,
            remedy="free space on this disk; the download is retried",
        )


def _disk(error: OSError, part: Part) -> MachineError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return MachineError(
            f"the disk of {part.path.parent} is full",
            kind=ErrorKind.EXHAUSTED,
            remedy="free space on this disk; the download is retried",
        )
    return MachineError(
        f"{part.path} cannot be written: {error.strerror}",
        kind=ErrorKind.PRECONDITION,
        remedy="allow this user to write there",
    )


class _Source(NamedTuple):
    url: str
    headers: Headers
    tls: ssl.SSLContext | None


async def _fetch(
    source: _Source, part: Part, worker: Worker, present: int, size: int, sha256: str, progress: Progress
) -> None:
    url = source.url
    resume = [("range", f"bytes={present}-"), ("if-range", f'"{sha256}"')] if present else []
    async with _response(source._replace(headers=[*source.headers, *resume])) as response:
        at = await _begin(url, response, present)
        buffer = bytearray()

        async def take(piece: bytes) -> None:
            nonlocal at
            buffer.extend(piece)
            if size and at + len(buffer) > size:
                buffer.clear()
                raise MachineError(
                    f"{url} is larger than the {size} bytes that the registry states", kind=ErrorKind.INTERNAL
                )
            progress(at + len(buffer))
            if len(buffer) >= WRITE_SIZE:
                at = await _write(part, worker, buffer, at)

        try:
            await _read(url, response, take)
        finally:
            with trio.CancelScope(shield=True):  # write what was received, so that it need not be downloaded again
                at = await _write(part, worker, buffer, at)
        progress(at)
    if size and at < size:
        raise MachineError(
            f"{url} ended after {at} of {size} bytes",
            kind=ErrorKind.UNAVAILABLE,
            remedy="the download is resumed from there",
        )


async def _write(part: Part, worker: Worker, buffer: bytearray, at: int) -> int:
    data = bytes(buffer)
    buffer.clear()
    await worker.run(lambda: part.write(data, at))
    return at + len(data)


async def _begin(url: str, response: httpcore.Response, present: int) -> int:
    """Return the offset in the file at which the body begins; MachineError if the response is an error."""
    names = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
    if response.status == 200:
        return 0
    if response.status == 206:
        content_range = _RANGE.fullmatch(names.get("content-range", ""))
        if content_range is not None and int(content_range[1]) == present:
            return present
    text = (await _error_text(url, response)).strip() if response.status >= 300 else ""
    raise MachineError(
        f"{url} answered with HTTP status {response.status}" + (f": {text}" if text else ""),
        kind=ErrorKind.UNAVAILABLE,
        remedy="the download is retried",
    )


async def _error_text(url: str, response: httpcore.Response) -> str:
    """Return the beginning of the body of an error response."""
    text = bytearray()

    async def take(piece: bytes) -> None:
        text.extend(piece)
        if len(text) > MAX_ERROR_TEXT:
            raise _Enough

    with trio.move_on_after(STALL):
        try:
            await _read(url, response, take)
        except (_Enough, MachineError):
            pass  # the part received so far is enough
    return text[:MAX_ERROR_TEXT].decode(errors="replace")


class _Enough(Exception):
    """The rest of a body is not needed."""


@asynccontextmanager
async def _response(source: _Source) -> AsyncIterator[httpcore.Response]:
    import httpcore

    url, headers, tls = source
    try:
        async with httpcore.AsyncConnectionPool(tls, network_backend=httpcore.TrioBackend()) as pool:
            limits: Mapping[str, Any] = {"timeout": {"connect": STALL, "read": STALL, "write": STALL, "pool": STALL}}
            async with pool.stream("GET", url, headers=[*headers], extensions=dict(limits)) as response:
                yield response
    except (httpcore.ConnectError, httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise _lost(url, error) from error
    except BaseExceptionGroup as group:
        raise unwrap(group) from None


async def _read(url: str, response: httpcore.Response, take: Callable[[bytes], Awaitable[None]]) -> None:
    """Pass each piece of the body to `take`; an exception from it ends the reading.

    The reading is ended from inside by cancellation, because httpcore's nested generators do not close each other.
    """
    import httpcore

    failure: BaseException | None = None
    with trio.CancelScope() as scope:
        try:
            async for piece in response.aiter_stream():
                if failure is None:
                    try:
                        await take(piece)
                    except BaseException as error:  # raised below
                        failure = error
                        scope.cancel()
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise _lost(url, error) from error
    if failure is not None:
        raise failure


def _lost(url: str, error: Exception) -> MachineError:
    reason = str(error) or f"no data received for {STALL:g} s"
    return MachineError(
        f"{url} cannot be read: {reason}", kind=ErrorKind.UNAVAILABLE, remedy="the download is resumed where it stopped"
    )
