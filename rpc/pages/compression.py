"""Compression of pages and data for browsers.

The length of a compressed page tells something about its content. An attacker who makes a browser load pages again and
again with chosen words in them could find out secrets in this way. So only requests that browsers mark as made by
a person or by our own pages are answered compressed; those of other sites carry no login anyway (`SameSite=Strict`).
"""

from __future__ import annotations

import zlib
from typing import Final

import trio
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LEAST: Final = 1024  # bytes that are worth compressing
MOST: Final = 1 << 20  # bytes of a page; larger answers are exports, which are sent as they are
PIECE: Final = 1 << 15  # bytes that take about 5 ms on a Raspberry Pi 4
TYPES: Final = ("text/html", "application/json")
OWN: Final = ("none", "same-origin")  # Sec-Fetch-Site of requests by a person, and by pages of this server


class Compress:
    """ASGI middleware that compresses answers which are complete in one message."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - ASGI 3
        if scope["type"] != "http" or not _accepts(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        begin: Message | None = None

        async def compressing(message: Message) -> None:
            nonlocal begin
            if message["type"] == "http.response.start" and _fits(MutableHeaders(scope=message)):
                begin = message
                return
            if begin is not None:
                body = message.get("body", b"")
                if not message.get("more_body") and LEAST <= len(body) <= MOST:
                    message = {**message, "body": await compress(body)}
                    headers = MutableHeaders(scope=begin)
                    headers["content-encoding"] = "gzip"
                    headers["content-length"] = str(len(message["body"]))
                await send(begin)
                begin = None
            await send(message)

        await self._app(scope, receive, compressing)


def _accepts(headers: Headers) -> bool:
    return "gzip" in headers.get("accept-encoding", "") and headers.get("sec-fetch-site") in OWN


def _fits(headers: MutableHeaders) -> bool:
    return headers.get("content-type", "").startswith(TYPES) and "content-encoding" not in headers


async def compress(data: bytes) -> bytes:
    """Return `data` in the format of gzip. Other tasks run between pieces, so that no event loop is held up."""
    compressor = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    pieces = []
    for start in range(0, len(data), PIECE):
        pieces.append(compressor.compress(data[start : start + PIECE]))
        await trio.lowlevel.checkpoint()
    return b"".join((*pieces, compressor.flush()))
