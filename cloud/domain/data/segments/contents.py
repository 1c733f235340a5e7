"""Contents of the files of segments: the last ones read stay in memory, because pages follow each other."""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

from cloud.blobs import Blobs

BYTES: Final = 32 * 1024 * 1024  # of all contents that stay in memory


class SegmentContents:
    """Contents by key, which never change. Any number of tasks may use it."""

    def __init__(self) -> None:
        self._by_key: dict[str, bytes] = {}  # the one used last is the last
        self._size = 0

    async def of(self, blobs: Blobs, key: str) -> bytes:
        """Return the content of a file; NOT_FOUND, or UNAVAILABLE."""
        content = self._by_key.pop(key, None)
        if content is None:
            async with aclosing(blobs.read(key)) as pieces:
                content = b"".join([piece async for piece in pieces])
            if key in self._by_key:
                return content  # another task has read it at the same time
            self._size += len(content)
        self._by_key[key] = content
        while self._size > BYTES:
            self._size -= len(self._by_key.pop(next(iter(self._by_key))))
        return content
