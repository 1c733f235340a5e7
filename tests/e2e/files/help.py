"""What tests of stores share."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import trio

from cloud.blobs import Blob, Blobs

LIMIT = 60.0  # seconds for what usually takes one


async def pieces(*content: bytes) -> AsyncGenerator[bytes, None]:
    for piece in content:
        yield piece


async def put(blobs: Blobs, *content: bytes, key: str = "") -> Blob:
    with trio.fail_after(LIMIT):
        async with aclosing(pieces(*content)) as given:
            return await blobs.put(given, key)


async def content_of(blobs: Blobs, key: str, start: int = 0) -> bytes:
    found = bytearray()
    with trio.fail_after(LIMIT):
        async with aclosing(blobs.read(key, start)) as reading:
            async for piece in reading:
                found += piece
    return bytes(found)
