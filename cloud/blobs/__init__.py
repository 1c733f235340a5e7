"""Large things, kept outside the database: captured files, packages. A row of the database names each by its key.

Write the blob first, then the row; delete the row first, then the blob: what a crash leaves is a blob without a row,
which `cloud.sweep` removes later, never a row without a blob. They are in a folder (`cloud.blobs.folder`) or in a
bucket of an S3-compatible store (`cloud.blobs.s3`), under the same names: `ab/abcdef...` for the key `abcdef...`.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
import trio

from schema.errors import MachineError

PIECE: Final = 1024 * 1024  # bytes read at once
_TOGETHER: Final = 8  # deletions at once
STAMP: Final = "machine-cloud.json"  # at the root of a store, beside the blobs: says whose store it is
MOST_STAMP: Final = 4096  # bytes of it
_CLEANUP: Final = 10.0  # seconds for one deletion; the sweep has time
_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.files")


@dataclass(frozen=True, slots=True)
class Blob:
    """What was kept. `digest` is the SHA-256 in hexadecimal digits, `size` in bytes."""

    key: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What is there. `time` is seconds of the epoch; it was put by then, or before."""

    key: str
    size: int
    time: float


class Blobs(Protocol):
    """A place for large things. Any number of tasks may use it.

    Each call may raise UNAVAILABLE: the place cannot be reached now, or refuses this cloud; the same may work later.
    """

    @property
    def where(self) -> str:
        """The folder or the bucket, for messages."""
        ...

    async def stamp(self) -> bytes:
        """Content of the file STAMP, at most MOST_STAMP bytes of it; empty if there is none. See cloud.identity."""
        ...

    async def put_stamp(self, content: bytes, *, replace: bool) -> bool:
        """Write the file STAMP, durable when this returns. Without `replace`, False if there is one already.

        Two writers without `replace` at the same moment may both get True in a bucket: read it again before relying
        on it.
        """
        ...

    async def size(self, key: str) -> int | None:
        """Bytes of a blob; None if it is not there."""
        ...

    async def put(self, pieces: AsyncIterable[bytes], key: str = "") -> Blob:
        """Keep what `pieces` are together: durable when this returns, nothing of it after an error.

        It gets a new key, or `key`: then it takes the place of what was kept under it.
        """
        ...

    def read(self, key: str, start: int = 0) -> AsyncGenerator[bytes, None]:
        """The pieces of a blob from byte `start` on; NOT_FOUND. Close it with contextlib.aclosing."""
        ...

    async def delete(self, key: str) -> None:
        """Forget a blob; one that is not there is no error."""
        ...

    def listed(self) -> AsyncGenerator[list[Kept], None]:
        """All blobs, some at a time, those with neighbouring keys together. Close it with contextlib.aclosing."""
        ...

    async def tidy(self, age: float) -> int:
        """Remove what was begun to be put more than `age` seconds ago and given up; how many there were."""
        ...


def new_key() -> str:
    """A key that nobody has: 32 hexadecimal digits."""
    return secrets.token_hex(16)


def name_of(key: str) -> str:
    """How a store calls a blob, with `/` between parts. ValueError for what is no key."""
    if not (key.isascii() and key.isalnum()):
        raise ValueError(f"{key!r} is no key of a blob")
    return f"{key[:2]}/{key}"


def key_of(name: str) -> str | None:
    """The key of the blob that a store calls `name`; None for what is no blob."""
    folder, _, key = name.partition("/")
    return key if key.isascii() and key.isalnum() and len(folder) == 2 and key.startswith(folder) else None


async def sizes(blobs: Blobs) -> dict[str, int]:
    """All keys, and how many bytes each has."""
    found: dict[str, int] = {}
    async with aclosing(blobs.listed()) as pages:
        async for page in pages:
            found.update((one.key, one.size) for one in page)
    return found


async def discard(blobs: Blobs, keys: Iterable[str]) -> int:
    """Delete blobs that no row names, several at once; how many. What cannot be deleted now is left to the sweep."""
    left = iter(list(keys))
    deleted, why = 0, ""

    async def some() -> None:
        nonlocal deleted, why
        for key in left:
            if why:
                return
            try:
                with trio.fail_after(_CLEANUP):
                    await blobs.delete(key)
            except (MachineError, OSError, trio.TooSlowError) as error:
                why = str(error) or "the store does not answer"
                return
            deleted += 1

    async with trio.open_nursery() as nursery:
        for _ in range(_TOGETHER):
            nursery.start_soon(some)
    if why:
        _log.warning("files that nothing names stay for now", reason=why)
    return deleted
