"""Helpers for tests of stores."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import trio

from cloud.blobs import Blob, Blobs

LIMIT = 60.0  # seconds for steps that usually take one second


async def pieces(*content: bytes) -> AsyncGenerator[bytes, None]:
    for piece in content:
        yield piece


async def put(blobs: Blobs, *content: bytes, key: str = "") -> Blob:
    with trio.fail_after(LIMIT):
        async with aclosing(pieces(*content)) as source:
            return await blobs.put(source, key)


async def content_of(blobs: Blobs, key: str, start: int = 0) -> bytes:
    content = bytearray()
    with trio.fail_after(LIMIT):
        async with aclosing(blobs.read(key, start)) as reading:
            async for piece in reading:
                content += piece
    return bytes(content)
