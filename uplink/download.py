"""A package by HTTP: goes on where it was cut off, and counts only if its SHA-256 is right."""

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
RESERVE: Final = 32 * 1024 * 1024  # bytes of the disk that downloads leave free
WRITTEN: Final = 1024 * 1024  # bytes that are gathered before they are written
WORDS: Final = 400  # bytes of a refusal that are told
_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")

PARTS: Final = "part"  # the folder of downloads that are not whole
_PIECE: Final = 1024 * 1024  # bytes that are read at once for a digest

Headers = Sequence[tuple[str, str]]
Progress = Callable[[int], None]
"""Called with the number of bytes downloaded so far."""


class Stopped(Exception):
    """A long calculation was asked to stop."""


def part_of(root: Path, sha256: str) -> Path:
    """Return where a download below `root` is kept while it is not whole."""
    return root / PARTS / sha256


def digest_of(path: Path, stopped: Callable[[], bool]) -> str:
    """Return the SHA-256 of a file in hexadecimal; raise Stopped soon after `stopped` has become true."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_PIECE):
            if stopped():
                raise Stopped
            digest.update(data)
    return digest.hexdigest()


class Part:
    """A download on the disk that may be continued. All methods block: call them in a worker."""

    def __init__(self, root: Path, sha256: str) -> None:
        self.path = part_of(root, sha256)

    def begin(self) -> int:
        """Make the folder; return how many bytes have been downloaded."""
        self.path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def room(self) -> int:
        """Return how many bytes the disk has free."""
        return shutil.disk_usage(self.path.parent).free

    def write(self, data: bytes, at: int) -> None:
        """Write `data` at the offset `at` and drop what was after it."""
        with self.path.open("r+b" if at else "wb") as file:
            file.truncate(at)
            file.seek(at)
            file.write(data)

    def remove(self) -> None:
        """Delete it."""
        self.path.unlink(missing_ok=True)

    def digest(self, stopped: Callable[[], bool]) -> str:
        """Return the SHA-256 of what has been downloaded; raise Stopped soon after `stopped` has become true."""
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
    """Fetch `url` into `part`. When this returns, `part` is whole and its SHA-256 is right.

    `tls` says whom to trust, by default those whom the system trusts.
    Raises MachineError: UNAVAILABLE if the connection fails or stands still; what came so far stays, for the next
    attempt. EXHAUSTED if the disk has no room. INTERNAL if what came is not what the registry has; nothing stays then.
    """
    left = trio.Event()
    try:
        there = await worker.run(part.begin)
        if size and there > size:
            await worker.run(part.remove)
            there = 0
        if not size or there < size:
            await _room(part, worker, size - there)
            await _fetch(_Source(url, headers, tls), part, worker, there, size, sha256, progress)
        found = await worker.run(lambda: part.digest(left.is_set))
    except OSError as error:
        raise _disk(error, part) from error
    finally:
        left.set()
    if found != sha256:
        await worker.run(part.remove)
        raise MachineError(
            f"what came from {url} is not what the registry has: its SHA-256 is {found}, not {sha256}",
            kind=ErrorKind.INTERNAL,
            remedy="it is fetched again; if this stays so, upload that version anew as another one",
        )


async def _room(part: Part, worker: Worker, needed: int) -> None:
    free = await worker.run(part.room)
    if free < needed + RESERVE:
        raise MachineError(
            f"{part.path.parent} has {free / 1024**2:.0f} MiB free, and {needed / 1024**2:.0f} MiB are to come",
            kind=ErrorKind.EXHAUSTED,
            remedy="make room on this disk; it is tried again",
        )


def _disk(error: OSError, part: Part) -> MachineError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return MachineError(
            f"the disk of {part.path.parent} is full",
            kind=ErrorKind.EXHAUSTED,
            remedy="make room on this disk; it is tried again",
        )
    return MachineError(
        f"{part.path} cannot be written: {error.strerror}",
        kind=ErrorKind.PRECONDITION,
        remedy="let this user write there",
    )


class _Source(NamedTuple):
    url: str
    headers: Headers
    tls: ssl.SSLContext | None


async def _fetch(
    source: _Source, part: Part, worker: Worker, there: int, size: int, sha256: str, progress: Progress
) -> None:
    url = source.url
    further = [("range", f"bytes={there}-"), ("if-range", f'"{sha256}"')] if there else []
    async with _response(source._replace(headers=[*source.headers, *further])) as response:
        at = await _begin(url, response, there)
        gathered = bytearray()

        async def take(piece: bytes) -> None:
            nonlocal at
            gathered.extend(piece)
            if size and at + len(gathered) > size:
                gathered.clear()
                raise MachineError(
                    f"{url} is larger than the {size} bytes that the registry has", kind=ErrorKind.INTERNAL
                )
            progress(at + len(gathered))
            if len(gathered) >= WRITTEN:
                at = await _write(part, worker, gathered, at)

        try:
            await _read(url, response, take)
        finally:
            with trio.CancelScope(shield=True):  # a write to the disk: what came is not fetched again
                at = await _write(part, worker, gathered, at)
        progress(at)
    if size and at < size:
        raise MachineError(
            f"{url} ended after {at} of {size} bytes", kind=ErrorKind.UNAVAILABLE, remedy="it goes on from there"
        )


async def _write(part: Part, worker: Worker, gathered: bytearray, at: int) -> int:
    data = bytes(gathered)
    gathered.clear()
    await worker.run(lambda: part.write(data, at))
    return at + len(data)


async def _begin(url: str, response: httpcore.Response, there: int) -> int:
    """Where the body begins in the file; MachineError if there is none."""
    names = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
    if response.status == 200:
        return 0
    if response.status == 206:
        found = _RANGE.fullmatch(names.get("content-range", ""))
        if found is not None and int(found[1]) == there:
            return there
    words = (await _body(url, response)).strip() if response.status >= 300 else ""
    raise MachineError(
        f"{url} answered with HTTP status {response.status}" + (f": {words}" if words else ""),
        kind=ErrorKind.UNAVAILABLE,
        remedy="it is tried again",
    )


async def _body(url: str, response: httpcore.Response) -> str:
    """The beginning of a refusal."""
    text = bytearray()

    async def take(piece: bytes) -> None:
        text.extend(piece)
        if len(text) > WORDS:
            raise _Enough

    with trio.move_on_after(STALL):
        try:
            await _read(url, response, take)
        except (_Enough, MachineError):
            pass  # what came is enough
    return text[:WORDS].decode(errors="replace")


class _Enough(Exception):
    """The rest of a body is not wanted."""


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
    """Hand each piece of the body to `take`; whatever that raises ends the reading.

    The reading is ended from inside, by cancellation: httpcore's generators stand in each other, and none closes the
    one in it.
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
    words = str(error) or f"nothing came for {STALL:g} s"
    return MachineError(
        f"{url} cannot be read: {words}", kind=ErrorKind.UNAVAILABLE, remedy="it is tried again, from where it stopped"
    )
