"""Copy files from one blob store to another: folder to bucket, bucket to folder, or between two of the same kind."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from cloud.blobs import Blobs, sizes
from cloud.domain.upkeep.identity import stamp_of
from schema.errors import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class Copied:
    """Result of a copy."""

    files: int = 0  # copied files
    size: int = 0  # total size of the copied files in bytes
    there: int = 0  # files that the target already had with the same size

    def __add__(self, other: Copied) -> Copied:
        return Copied(self.files + other.files, self.size + other.size, self.there + other.there)


async def copy(source: Blobs, target: Blobs, progress: Callable[[Copied], None] = lambda _: None) -> Copied:
    """Copy every file that `target` lacks, under the same key, then verify the listed sizes. Nothing is deleted.

    The file that identifies the cloud of the source is copied first and again at the end. An interrupted copy can be
    repeated: files that exist with the right size are not copied again. Files deleted meanwhile are left out. Raises
    MachineError if a copied file differs, or, before anything is copied, if `target` belongs to another cloud or holds
    other files than `source`.
    """
    wanted, there = await sizes(source), await sizes(target)
    await _claim(source, target, bool(there) and not there.keys() & wanted.keys())
    missing = sorted(key for key, size in wanted.items() if there.get(key) != size)
    done = Copied(there=len(wanted) - len(missing))
    copied: dict[str, int] = {}
    for key in missing:
        made = await _one(source, target, key, wanted[key])
        if made is not None:
            copied[key] = made
            done += Copied(1, made)
            progress(done)
    there = await sizes(target) if copied else {}
    for key, size in copied.items():
        if there.get(key) != size:
            raise _differs(key, size, there.get(key, 0))
    if stamp := await source.stamp():
        await target.put_stamp(stamp, replace=True)
    return done


async def _claim(source: Blobs, target: Blobs, other: bool) -> None:
    """Mark the target as belonging to the same cloud; MachineError (PRECONDITION) if it belongs to another.

    `other` states that the target's files are not those of the source.
    """
    own, its = await stamp_of(source), await stamp_of(target)
    if its is None and not other:
        if own is not None:
            await target.put_stamp(await source.stamp(), replace=False)
        return
    if its is None or own is None or its.cloud != own.cloud:
        whose = f"belongs to the cloud {its.cloud}" if its is not None else "holds files that are not of this cloud"
        raise MachineError(
            f"{target.where} {whose}: nothing is copied there",
            kind=ErrorKind.PRECONDITION,
            remedy="name an empty folder, or a prefix that nobody uses",
        )


async def _one(source: Blobs, target: Blobs, key: str, size: int) -> int | None:
    """Copy a file; return its size in bytes, or None if the file no longer exists."""
    gone = False

    async def pieces() -> AsyncGenerator[bytes, None]:
        nonlocal gone
        try:
            async with aclosing(source.read(key)) as reading:
                async for piece in reading:
                    yield piece
        except MachineError as error:
            gone = error.kind is ErrorKind.NOT_FOUND
            raise

    try:
        async with aclosing(pieces()) as content:
            made = await target.put(content, key)
    except MachineError:
        if gone:
            return None
        raise
    if made.size != size:
        await target.delete(key)
        raise _differs(key, size, made.size)
    return made.size


def _differs(key: str, size: int, found: int) -> MachineError:
    return MachineError(
        f"file {key} has {size} bytes at one place and {found} at the other",
        kind=ErrorKind.INTERNAL,
        remedy="copy again; if it stays so, the disk or the store loses data",
    )
