"""Uploads of archives into the registry."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import Any, Final

from cloud.blobs import discard
from cloud.domain.registry import files
from cloud.domain.registry.files import File, FileKey
from cloud.domain.registry.items import MODULE, RegistryItem
from cloud.services.common.base import Service
from schema import ErrorKind, MachineError

_GZIP: Final = b"\x1f\x8b"  # RFC 1952, 2.3.1


async def upload(
    service: Service, item: RegistryItem, place: FileKey, pieces: AsyncIterable[bytes], metadata: Mapping[str, Any]
) -> File:
    """Store an archive as a new file of `item`: on disk when this returns, discarded on error.

    EXISTS if the place is taken, EXHAUSTED if the archive exceeds the limit, INVALID if it is empty or, for a module,
    not a .tar.gz.
    """
    cloud = service.cloud
    await service.read(lambda sql: files.is_free(sql, item, place))
    blob = await cloud.blobs.put(_checked(pieces, cloud.limits.package, gzip=item.type == MODULE))
    try:
        return await service.change(lambda sql: files.add(sql, item, place, blob, service.now(), metadata))
    except MachineError as error:
        if error.kind is not ErrorKind.UNAVAILABLE:  # otherwise the transaction may have been committed
            await discard(cloud.blobs, [blob.key])
        raise


async def _checked(pieces: AsyncIterable[bytes], max_bytes: int, *, gzip: bool) -> AsyncIterator[bytes]:
    size, head = 0, b""
    async for piece in pieces:
        size += len(piece)
        if size > max_bytes:
            raise MachineError(
                f"the archive is larger than {max_bytes / 1024**2:g} MiB",
                kind=ErrorKind.EXHAUSTED,
                remedy="make it smaller, or start machine-cloud with a larger --max-package",
            )
        if len(head) < len(_GZIP):
            head = (head + piece)[: len(_GZIP)]
            if gzip and not _GZIP.startswith(head):
                raise _not_an_archive()
        yield piece
    if not size or (gzip and head != _GZIP):
        raise _not_an_archive()


def _not_an_archive() -> MachineError:
    return MachineError(
        "the upload is not a .tar.gz archive", kind=ErrorKind.INVALID, remedy="create one: `machine module pack FOLDER`"
    )
