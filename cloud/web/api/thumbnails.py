"""Thumbnails of captured pictures: generated on request, and cached in memory.

Content is not trusted. Therefore only the formats of support.media.pictures are decoded, up to the limits below, in a
separate thread, one picture at a time.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Final

import trio
from starlette.requests import Request
from starlette.responses import Response

from cloud.domain.data.files import FileRecord
from cloud.domain.data.media import PICTURES
from cloud.services.common.base import Cloud
from cloud.services.data.data import DataService
from cloud.web.common.site import author_of
from rpc.access import identity_of
from schema import ErrorKind, MachineError
from support import Worker
from support.media.pictures import decode

EDGE: Final = 416  # pixels of the longer side: twice that of a tile on the data page, for dense screens
MAX_SIZE: Final = 32 << 20  # bytes of the original picture
MAX_PIXELS: Final = 25_000_000  # of the decoded picture; JPEG is decoded at a fraction of its size
CACHE_SIZE: Final = 16 << 20  # bytes of cached thumbnails


class Thumbnails:
    """Endpoint of thumbnails."""

    def __init__(self, cloud: Cloud, room: int = CACHE_SIZE) -> None:
        self._cloud = cloud
        self._room = room
        self._cache: OrderedDict[str, bytes] = OrderedDict()  # by digest, least recently used first
        self._size = 0
        self._turn = trio.Lock()

    async def thumbnail(self, request: Request) -> Response:
        """`GET /files/<id>/thumbnail`, as WebP. INVALID if the file is not a supported picture or too large."""
        if identity_of(request.scope) is None:
            raise MachineError("this needs a key", kind=ErrorKind.UNAUTHENTICATED, remedy="log in")
        file = await DataService(self._cloud, author_of(request)).file(request.path_params["id"])
        etag = f'"{file.digest}-{EDGE}"'
        headers = {"etag": etag, "cache-control": "private, max-age=86400"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(await self._thumbnail_of(file), headers=headers, media_type="image/webp")

    async def _thumbnail_of(self, file: FileRecord) -> bytes:
        if file.mime not in PICTURES or file.size > MAX_SIZE:
            raise _refused(f"a file of the type {file.mime} with {file.size} bytes")
        async with self._turn:
            if (cached := self.cached_thumbnail(file.digest)) is not None:
                return cached
            async with aclosing(self._cloud.blobs.read(file.blob)) as pieces:
                data = await _joined(pieces)
            worker = Worker("a small picture")
            async with worker.opened():
                thumbnail = await worker.run(_shrinking(data))
            self.cache(file.digest, thumbnail)
            return thumbnail

    def cached_thumbnail(self, digest: str) -> bytes | None:
        """Return the cached thumbnail of the file with this digest, or None."""
        if digest in self._cache:
            self._cache.move_to_end(digest)
        return self._cache.get(digest)

    def cache(self, digest: str, thumbnail: bytes) -> None:
        """Cache a thumbnail; the least recently used ones are dropped to make room."""
        self._cache[digest] = thumbnail
        self._size += len(thumbnail)
        while self._size > self._room:
            _, old = self._cache.popitem(last=False)
            self._size -= len(old)


async def _joined(pieces: AsyncIterator[bytes]) -> bytes:
    data = bytearray()
    async for piece in pieces:
        data += piece
        if len(data) > MAX_SIZE:
            raise _refused("a file that is larger than its recorded size")
    return bytes(data)


def _shrinking(data: bytes) -> Callable[[], bytes]:
    return lambda: small(data)


def small(data: bytes) -> bytes:
    """Return a picture as WebP, upright and at most EDGE pixels. INVALID if it cannot be decoded or is too large."""
    try:
        image = decode(data, max_pixels=MAX_PIXELS, near=(EDGE, EDGE))
        image.thumbnail((EDGE, EDGE))
        output = io.BytesIO()
        image.save(output, "WEBP", quality=75, method=0)
        return output.getvalue()
    except (MachineError, OSError, ValueError) as error:
        raise _refused(f"this file: {error}") from error


def _refused(what: str) -> MachineError:
    return MachineError(f"cannot create a thumbnail of {what}", kind=ErrorKind.INVALID, remedy="open the file itself")
