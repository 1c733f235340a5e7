"""Storage for large content outside the database: captured files and packages. Rows refer to blobs by key.

Write the blob before its row; delete the row before its blob. After a crash there may be blobs without rows, which
`cloud.domain.upkeep.sweep` removes later, but no rows without blobs. Blobs are stored in a folder
(`cloud.blobs.folder`) or in a bucket of an S3-compatible store (`cloud.blobs.s3`), with the same names: `ab/abcdef...`
for the key `abcdef...`.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
import trio

from schema import MachineError

PIECE: Final = 1024 * 1024  # bytes to read at once
_TOGETHER: Final = 8  # concurrent deletions
STAMP: Final = "machine-cloud.json"  # file at the root of a store that identifies its cloud
MOST_STAMP: Final = 4096  # maximum size of that file in bytes
_CLEANUP: Final = 10.0  # seconds for one deletion; the sweep can retry later
_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.files")


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored blob. `digest` is the SHA-256 in hexadecimal digits, `size` is in bytes."""

    key: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class ListedBlob:
    """An entry in the list of blobs. `time` is in seconds since the epoch; the blob was stored then or earlier."""

    key: str
    size: int
    time: float


class Blobs(Protocol):
    """A store for large content. Any number of tasks may use it.

    Each call may raise UNAVAILABLE: the store cannot be reached, or refuses access; a retry may succeed.
    """

    @property
    def where(self) -> str:
        """Folder or bucket, for messages."""
        ...

    def path(self, key: str) -> str | None:
        """Return the absolute path of a blob, whether or not it exists; None if blobs are no files of this computer."""
        ...

    async def stamp(self) -> bytes:
        """Return up to MOST_STAMP bytes of the file STAMP; empty if it does not exist.

        See cloud.domain.upkeep.identity.
        """
        ...

    async def put_stamp(self, content: bytes, *, replace: bool) -> bool:
        """Write the file STAMP, durable on return. Without `replace`, return False if it exists already.

        In a bucket, two concurrent writers without `replace` may both get True: read the file again before relying on
        it.
        """
        ...

    async def size(self, key: str) -> int | None:
        """Return the size of a blob in bytes; None if it does not exist."""
        ...

    async def put(self, pieces: AsyncIterable[bytes], key: str = "") -> Blob:
        """Store the concatenation of `pieces`; durable on return, and removed after an error.

        The blob gets a new key, or replaces the one at `key`.
        """
        ...

    def read(self, key: str, start: int = 0) -> AsyncGenerator[bytes, None]:
        """Yield the content of a blob from byte `start` on; NOT_FOUND. Close it with contextlib.aclosing."""
        ...

    async def delete(self, key: str) -> None:
        """Delete a blob, if it exists."""
        ...

    def listed(self) -> AsyncGenerator[list[ListedBlob], None]:
        """Yield all blobs in batches, grouped by key prefix. Close it with contextlib.aclosing."""
        ...

    async def tidy(self, age: float) -> int:
        """Remove incomplete uploads that began more than `age` seconds ago; return their number."""
        ...


def new_key() -> str:
    """Return a new random key of 32 hexadecimal digits."""
    return secrets.token_hex(16)


def name_of(key: str) -> str:
    """Return the name of a blob in a store, with `/` between parts. ValueError for an invalid key."""
    if not (key.isascii() and key.isalnum()):
        raise ValueError(f"{key!r} is not a valid blob key: expected only ASCII letters and digits")
    return f"{key[:2]}/{key}"


def key_of(name: str) -> str | None:
    """Return the key of the blob with this name in a store; None for other files."""
    folder, _, key = name.partition("/")
    return key if key.isascii() and key.isalnum() and len(folder) == 2 and key.startswith(folder) else None


async def sizes(blobs: Blobs) -> dict[str, int]:
    """Return all keys with the sizes of their blobs in bytes."""
    sizes_by_key: dict[str, int] = {}
    async with aclosing(blobs.listed()) as pages:
        async for page in pages:
            sizes_by_key.update((blob.key, blob.size) for blob in page)
    return sizes_by_key


async def discard(blobs: Blobs, keys: Iterable[str]) -> int:
    """Delete blobs without rows, several at a time; return how many. After an error the rest is left to the sweep."""
    remaining = iter(list(keys))
    deleted, failure = 0, ""

    async def delete_remaining() -> None:
        nonlocal deleted, failure
        for key in remaining:
            if failure:
                return
            try:
                with trio.fail_after(_CLEANUP):
                    await blobs.delete(key)
            except (MachineError, OSError, trio.TooSlowError) as error:
                failure = str(error) or "the store does not answer"
                return
            deleted += 1

    async with trio.open_nursery() as nursery:
        for _ in range(_TOGETHER):
            nursery.start_soon(delete_remaining)
    if failure:
        _log.warning("some unused files could not be deleted: they remain until a later sweep", reason=failure)
    return deleted
