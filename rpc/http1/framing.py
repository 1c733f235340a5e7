"""Framing of messages of HTTP/1.1 (RFC 9112 6 and 7): bodies of requests, and heads and bodies of responses. Pure.

The head of a request was checked by `rpc.http.head`: it has one framing, and this side of it is `Body`.
"""

from __future__ import annotations

import re
from typing import Final

from rpc.carrier import Headers
from rpc.http.head import Head, HeadError

_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*+(?:;[\t\x20-\x7e\x80-\xff]*+)?\r\n")
_LONGEST_LINE: Final = 4096
"""Bytes of the line before a chunk, and of all trailers together. Clients send neither extensions nor trailers."""

_BODILESS: Final = frozenset({204, 304})
_HOP: Final = frozenset({"connection", "keep-alive", "transfer-encoding"})
"""Fields about the connection, which an application does not decide."""

_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")


class Body:
    """Reader of the body of one request: bytes in, content out. HeadError (400) for a malformed chunk.

    `ended` tells whether the body is complete; `rest` then has the bytes after it.
    """

    __slots__ = ("_buffer", "_chunk", "_chunked", "_left", "_trailers", "ended")

    def __init__(self, head: Head) -> None:
        self._chunked = bool(head.get("transfer-encoding"))
        self._left = 0 if self._chunked else int(head.get("content-length") or 0)  # of the body or the chunk
        self._chunk = False  # inside a chunk, whose end must be CR LF
        self._trailers = False
        self._buffer = b""
        self.ended = not self._chunked and not self._left

    @property
    def rest(self) -> bytes:
        """Bytes received after the end of the body."""
        return self._buffer

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._buffer = self._buffer + data if self._buffer else data

    def take(self) -> bytes:
        """Return the content that has arrived, empty if there is none; all of it if the body `ended`."""
        if not self._chunked:
            return self._some()
        parts = []
        while not self.ended:
            if self._left:
                part = self._some()
                if not part:
                    break
                parts.append(part)
            elif not self._line():
                break
        return b"".join(parts)

    def _some(self) -> bytes:
        size = min(self._left, len(self._buffer))
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        self._left -= size
        self.ended = not self._chunked and not self._left
        return data

    def _line(self) -> bool:
        """Read the bytes between two chunks, or a trailer; False if more bytes are needed."""
        buffer = self._buffer
        if self._chunk:
            if len(buffer) < 2:
                return self._wait(b"\r\n".startswith(buffer))
            if buffer[:2] != b"\r\n":
                raise HeadError(400, "a chunk does not end with CR LF")
            self._buffer, self._chunk = buffer[2:], False
            return True
        if self._trailers:
            return self._trailer()
        end = buffer.find(b"\r\n", 0, _LONGEST_LINE)
        if end < 0:
            return self._wait(len(buffer) < _LONGEST_LINE)
        match = _CHUNK.match(buffer)
        if match is None or match.end() != end + 2:
            raise HeadError(400, "the size of a chunk is malformed")
        self._buffer = buffer[end + 2 :]
        self._left = int(match[1], 16)
        self._chunk, self._trailers = self._left > 0, self._left == 0
        return True

    def _trailer(self) -> bool:
        """Discard the trailers once they are complete; False if more bytes are needed."""
        buffer = self._buffer
        if buffer[:2] == b"\r\n":
            self._buffer, self.ended = buffer[2:], True
            return True
        end = buffer.find(b"\r\n\r\n", 0, _LONGEST_LINE)
        if end < 0:
            return self._wait(len(buffer) < _LONGEST_LINE)
        for line in buffer[:end].split(b"\r\n"):
            name, colon, value = line.decode("latin-1").partition(":")
            if not (colon and _NAME.match(name) and _VALUE.match(value)):
                raise HeadError(400, "a trailer is malformed")
        self._buffer, self.ended = buffer[end + 4 :], True
        return True

    @staticmethod
    def _wait(possible: bool) -> bool:
        if not possible:
            raise HeadError(400, "a chunk is malformed or its line too long")
        return False


class Framer:
    """Writer of one response: heads and content in, bytes out. RuntimeError for a misuse by the application.

    A response without content-length is sent in chunks; to HTTP/1.0, its end is the end of the connection, and
    `closes` is True.
    """

    __slots__ = ("_chunked", "_left", "_silent", "closes", "ended", "started")

    def __init__(self, head: Head) -> None:
        self._silent = head.method == "HEAD"  # the head is that of GET, without a body
        self._chunked = head.version != "1.0"
        self._left = -1  # bytes of the body that content-length has announced; -1 if it is not announced
        self.closes = head.version == "1.0" or "close" in head.tokens("connection")
        self.started = self.ended = False

    @property
    def complete(self) -> bool:
        """Whether the peer has a complete response once it has what was returned, even before `end`."""
        return self.ended or (self.started and (self._silent or self._left == 0))

    def head(self, status: int, reason: str, headers: Headers) -> bytes:
        """Return the bytes of the head."""
        if self.started:
            raise RuntimeError("the response has already begun")
        lines = [f"HTTP/1.1 {status} {reason}"]
        for name, value in headers:
            if name == "content-length":
                if status == 204:
                    continue  # RFC 9110 8.6
                self._left = int(value)
            elif name in _HOP:
                continue
            if not (_NAME.match(name) and _VALUE.match(value)):
                raise RuntimeError(f"the header field {name!r} of a response is malformed")
            lines.append(f"{name}: {value}")
        self.started = True
        if status in _BODILESS:
            self._silent, self._left = True, 0
        elif self._left < 0:
            if self._chunked:
                lines.append("transfer-encoding: chunked")
            else:
                self.closes = True
        else:
            self._chunked = False
        if self.closes:
            lines.append("connection: close")
        lines += ("", "")
        return "\r\n".join(lines).encode("latin-1")

    def content(self, data: bytes) -> bytes:
        """Return the bytes of a piece of the body."""
        if not self.started or self.ended:
            raise RuntimeError("the response has not begun or has already ended")
        if self._silent or not data:
            return b""
        if self._left >= 0:
            if len(data) > self._left:
                raise RuntimeError("the body of a response is longer than its content-length")
            self._left -= len(data)
            return data
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data

    def end(self) -> bytes:
        """Return the bytes that end the response."""
        if not self.started or self.ended:
            raise RuntimeError("the response has not begun or has already ended")
        if self._left > 0 and not self._silent:
            raise RuntimeError("the body of a response is shorter than its content-length")
        self.ended = True
        return b"0\r\n\r\n" if self._chunked and self._left < 0 and not self._silent else b""
