"""Helpers for tests of stores."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import trio

from cloud.blobs import Blob, Blobs
from cloud.store.sql import Sql, inserted

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


def row(sql: Sql, key: str, size: int = 1, digest: str = "") -> None:
    """Insert the row of a file, as an upload does."""
    if sql.row("SELECT number FROM data_sources") is None:
        words = ("key", "organization_id", "location_id", "machine_id", "machine", "part_id", "part")
        words += ("component_type", "component", "method", "parameters")
        inserted(sql, "data_sources", dict.fromkeys(words, "x"))
    source = sql.row("SELECT number FROM data_sources")
    assert source is not None
    texts = ("type", "name", "extension", "mime")
    values = {"id": key, "key": key, "source": source["number"], "blob": key, "digest": digest, "size": size}
    times = dict.fromkeys(("requested", "received", "synced"), 1)
    inserted(sql, "files", {**dict.fromkeys(texts, ""), **values, **times})
