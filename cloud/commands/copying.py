"""Copy files from one blob store to another: folder to bucket, bucket to folder, or between two of the same kind."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from cloud.blobs import Blobs, sizes
from cloud.domain.upkeep.identity import stamp_of
from schema import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class CopyResult:
    """Result of a copy."""

    files: int = 0  # copied files
    size: int = 0  # total size of the copied files in bytes
    present: int = 0  # files that the target already had with the same size

    def __add__(self, other: CopyResult) -> CopyResult:
        return CopyResult(self.files + other.files, self.size + other.size, self.present + other.present)


async def copy(source: Blobs, target: Blobs, progress: Callable[[CopyResult], None] = lambda _: None) -> CopyResult:
    """Copy every file that `target` lacks, under the same key, then verify the listed sizes. Nothing is deleted.

    The file that identifies the cloud of the source is copied first and again at the end. An interrupted copy can be
    repeated: files that exist with the right size are not copied again. Files deleted since are left out. Raises
    MachineError if a copied file differs, or, before anything is copied, if `target` belongs to another cloud or holds
    other files than `source`.
    """
    source_sizes, target_sizes = await sizes(source), await sizes(target)
    await _claim(source, target, bool(target_sizes) and not target_sizes.keys() & source_sizes.keys())
    missing = sorted(key for key, size in source_sizes.items() if target_sizes.get(key) != size)
    done = CopyResult(present=len(source_sizes) - len(missing))
    copied: dict[str, int] = {}
    for key in missing:
        copied_size = await _copy_blob(source, target, key, source_sizes[key])
        if copied_size is not None:
            copied[key] = copied_size
            done += CopyResult(1, copied_size)
            progress(done)
    target_sizes = await sizes(target) if copied else {}
    for key, size in copied.items():
        if target_sizes.get(key) != size:
            raise _differs(key, size, target_sizes.get(key, 0))
    if stamp := await source.stamp():
        await target.put_stamp(stamp, replace=True)
    return done


async def _claim(source: Blobs, target: Blobs, other: bool) -> None:
    """Mark the target as belonging to the same cloud; MachineError (PRECONDITION) if it belongs to another.

    `other` states that the target's files are not those of the source.
    """
    source_stamp, target_stamp = await stamp_of(source), await stamp_of(target)
    if target_stamp is None and not other:
        if source_stamp is not None:
            await target.put_stamp(await source.stamp(), replace=False)
        return
    if target_stamp is None or source_stamp is None or target_stamp.cloud != source_stamp.cloud:
        problem = (
            f"belongs to the cloud {target_stamp.cloud}"
            if target_stamp is not None
            else "contains files that do not belong to this cloud"
        )
        raise MachineError(
            f"{target.where} {problem}: nothing was copied",
            kind=ErrorKind.PRECONDITION,
            remedy="choose an empty folder, or an unused prefix of a bucket",
        )


async def _copy_blob(source: Blobs, target: Blobs, key: str, size: int) -> int | None:
    """Copy a file; return its size in bytes, or None if the file no longer exists."""
    deleted = False

    async def pieces() -> AsyncGenerator[bytes, None]:
        nonlocal deleted
        try:
            async with aclosing(source.read(key)) as reading:
                async for piece in reading:
                    yield piece
        except MachineError as error:
            deleted = error.kind is ErrorKind.NOT_FOUND
            raise

    try:
        async with aclosing(pieces()) as content:
            stored = await target.put(content, key)
    except MachineError:
        if deleted:
            return None
        raise
    if stored.size != size:
        await target.delete(key)
        raise _differs(key, size, stored.size)
    return stored.size


def _differs(key: str, size: int, target_size: int) -> MachineError:
    return MachineError(
        f"file {key} has {size} bytes in the source and {target_size} in the target",
        kind=ErrorKind.INTERNAL,
        remedy="copy again; if the error persists, the disk or the store loses data",
    )
