"""A web server on loopback whose answers a test defines, with and without TLS."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import trio

from tests.loopback import listening

Send = Callable[[bytes], Awaitable[None]]


class Request(NamedTuple):
    """What the server received. Names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]


Answer = Callable[[Request, Send], Awaitable[None]]
"""Sends a whole response; the connection is closed then."""


class Server:
    """Answers by path; 404 for others. `requests` are those received."""

    def __init__(self, answers: dict[str, Answer] | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        self.answers = answers or {}
        self.requests: list[Request] = []
        self.port = 0
        self._tls = tls

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"https://localhost:{self.port}" if self._tls else f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Server]:
        """Serve while the context is open."""
        async with listening(self._handle) as self.port:
            yield self

    async def _handle(self, plain: trio.SocketStream) -> None:
        stream = trio.SSLStream(plain, self._tls, server_side=True, https_compatible=True) if self._tls else plain
        head = b""
        try:
            while b"\r\n\r\n" not in head:
                if not (data := await stream.receive_some(65536)):
                    return
                head += data
            line, *lines = head.decode().split("\r\n")
            pairs = (text.split(": ", 1) for text in lines if text)
            request = Request(line.split()[1], {name.lower(): value for name, value in pairs})
            self.requests.append(request)
            answer = self.answers.get(request.path.partition("?")[0], status("404 Not Found"))
            await answer(request, stream.send_all)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client has closed the connection
        finally:
            await trio.aclose_forcefully(stream)


def status(line: str, body: bytes = b"", **headers: str) -> Answer:
    """Answer with a status and a body."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())

    async def answer(request: Request, send: Send) -> None:
        await send(f"HTTP/1.1 {line}\r\n{lines}content-length: {len(body)}\r\n\r\n".encode() + body)

    return answer


def redirect(location: str, line: str = "302 Found") -> Answer:
    """Answer with a redirect."""
    return status(line, location=location)


def serving(data: bytes, *, end: int | None = None) -> Answer:
    """Serve a file with ranges, as nginx does; the connection breaks after byte `end` of the file."""

    async def answer(request: Request, send: Send) -> None:
        begin = int(request.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        length = f"content-length: {len(data) - begin}\r\n"
        if begin >= len(data):
            await send(f"HTTP/1.1 416 x\r\ncontent-range: bytes */{len(data)}\r\ncontent-length: 0\r\n\r\n".encode())
        elif begin:
            span = f"content-range: bytes {begin}-{len(data) - 1}/{len(data)}\r\n"
            await send(f"HTTP/1.1 206 x\r\n{span}{length}\r\n".encode() + data[begin:end])
        else:
            await send(f"HTTP/1.1 200 OK\r\n{length}\r\n".encode() + data[:end])

    return answer
