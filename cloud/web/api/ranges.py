"""Partial downloads over HTTP: `Range: bytes=100-` (RFC 9110, 14), to resume interrupted downloads."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

Read = Callable[[int], AsyncIterator[bytes]]
"""Returns the content of a file from an offset on, in pieces."""

_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def span(header: str, size: int) -> tuple[int, int] | None:
    """Return start and end (exclusive) of a single range; None if the header is not a single range and is to be
    ignored.

    ValueError if no byte of the file is in the range.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    begin = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if first and last and int(last) < int(first):
        return None
    if begin >= size or begin >= end:
        raise ValueError(header)
    return begin, end


def served(request: Request, read: Read, size: int, digest: str, name: str, media_type: str) -> Response:
    """Return a response with a file of `size` bytes and SHA-256 `digest`, complete or the requested range."""
    etag = f'"{digest}"'
    headers = {
        "accept-ranges": "bytes",
        "etag": etag,
        "cache-control": "private, max-age=3600",
        "content-disposition": f'attachment; filename="{name}"',
    }
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    unchanged = request.headers.get("if-range", etag) == etag
    try:
        requested = span(request.headers.get("range", ""), size) if unchanged else None
    except ValueError:
        return Response(status_code=416, headers={**headers, "content-range": f"bytes */{size}"})
    begin, end = requested or (0, size)
    headers["content-length"] = str(end - begin)
    if requested is not None:
        headers["content-range"] = f"bytes {begin}-{end - 1}/{size}"
    code = 200 if requested is None else 206
    if request.method == "HEAD":
        return Response(status_code=code, headers=headers, media_type=media_type)
    return StreamingResponse(_cut(read, begin, end - begin), code, headers, media_type)


async def _cut(read: Read, begin: int, count: int) -> AsyncIterator[bytes]:
    pieces = read(begin)
    async with aclosing(pieces):  # type: ignore[type-var]
        async for piece in pieces:
            yield piece[:count]
            count -= len(piece)
            if count <= 0:
                return
