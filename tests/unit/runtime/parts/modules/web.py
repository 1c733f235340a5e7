"""A web server for download tests, with answers set by the test."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

from tests.loopback import listening

DATA = bytes(range(251)) * 20_000  # about 5 MB
SHA = hashlib.sha256(DATA).hexdigest()
LIMIT = 60.0

Answer = Callable[[dict[str, str]], tuple[str, bytes]]
"""Maps the headers of a request to a status line with headers, and a body."""


def whole(headers: dict[str, str], data: bytes = DATA) -> tuple[str, bytes]:
    begin = int(headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
    if not begin:
        return f"200 OK\r\ncontent-length: {len(data)}", data
    assert headers["if-range"] == f'"{SHA}"'
    return (
        f"206 x\r\ncontent-range: bytes {begin}-{len(data) - 1}/{len(data)}\r\ncontent-length: {len(data) - begin}",
        data[begin:],
    )


class Web:
    """Serve these answers in turn and repeat the last one."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, str]] = []
        self.url = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Web]:
        async with listening(self._handle) as port:
            self.url = f"http://127.0.0.1:{port}/package"
            yield self

    async def _handle(self, stream: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += await stream.receive_some(65536)
        lines = head.decode().lower().split("\r\n")[1:]
        self.asked.append(dict(line.split(": ", 1) for line in lines if line))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        status, body = answer(self.asked[-1])
        try:
            await stream.send_all(f"HTTP/1.1 {status}\r\n\r\n".encode() + body)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client has closed the connection early
        await stream.aclose()
