"""One connection of HTTP/1.1 for gRPC-Web, on the side of the server, without input and output. Pure.

It has the methods of `http2.Connection`. Calls come one after the other. Requests of pages are refused: every site that
a person of the same network opens could otherwise move the machine, so there is no CORS either.
"""

import struct

from micro.wire import faults
from micro.wire.bounds import Bounds
from micro.wire.hpack import KEPT
from micro.wire.http2 import Budget, Stream, percent

CONTENT_TYPE = b"application/grpc-web+proto"
HEADERS = (b"content-length", b"transfer-encoding", b"origin")  # which are read, and those of KEPT
REASONS = {400: "Bad Request", 403: "Forbidden", 405: "Method Not Allowed", 413: "Content Too Large", 431: "Too Large"}
TRAILERS = 0x80
KEEP_ALIVE_MS = 60000


class WebConnection:
    """One HTTP/1.1 connection; see the module."""

    def __init__(self, bounds: Bounds, budget: Budget, now: int) -> None:
        self.bounds = bounds
        self.over = ""
        self.ready: list[Stream] = []
        self.cancelled: list[Stream] = []
        self.trusted = False
        self.began = self.heard = self.used = now
        self._now = now
        self._budget = budget
        self._head = bytearray()
        self._left = 0  # bytes of the body still to come
        self._stream: Stream | None = None
        self._count = 0
        self._out = bytearray()

    @property
    def calls(self) -> int:
        """Number of calls that are being received or carried out."""
        return int(self._stream is not None)

    def receive(self, data: bytes, now: int) -> None:
        """Take bytes of the peer."""
        self._now = self.heard = now
        at = 0
        while at < len(data) and not self.over:
            if self._stream is None:
                at = self._take_head(data, at)
            elif self._left:
                part = data[at : at + self._left]
                at += len(part)
                self._left -= len(part)
                self._stream.body += part
                if not self._left:
                    self._complete(self._stream)
            else:
                self._refuse(400, "a request begins before the answer to the last one")

    def _take_head(self, data: bytes, at: int) -> int:
        before = len(self._head)
        self._head += data[at : at + self.bounds.header_list + 1 - before]
        if not 65 <= self._head[0] <= 90:  # such as the first byte of TLS, whose client tries again without it
            self._refuse(400, "this is not HTTP")
            return len(data)
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            if len(self._head) > self.bounds.header_list:
                self._refuse(431, "the header fields are too long")
            return at + len(self._head) - before
        head, self._head = self._head[:end], bytearray()
        self._request(bytes(head))
        return at + end + 4 - before

    def _request(self, head: bytes) -> None:
        lines = head.split(b"\r\n")
        words = lines[0].split(b" ")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            name = name.lower()
            if name in headers and name in HEADERS:
                self._refuse(400, "a header field is there twice")
                return
            if name in KEPT or name in HEADERS:
                headers[name] = value.strip()
        length = headers.get(b"content-length", b"")
        if len(words) != 3 or words[2] != b"HTTP/1.1":
            self._refuse(400, "this is not HTTP")
        elif words[0] != b"POST" or headers.get(b"content-type") != CONTENT_TYPE:
            self._refuse(405, "only calls of gRPC and gRPC-Web are answered here")
        elif b"origin" in headers:
            self._refuse(403, "calls of web pages are not answered here")
        elif b"transfer-encoding" in headers or not 0 < len(length) < 10 or not length.isdigit():
            self._refuse(400, "the request has no valid content-length")
        elif int(length) > self.bounds.message + 5 or int(length) > self._budget.left:
            self._refuse(413, f"the request has {int(length)} bytes, and this server takes {self.bounds.message}")
        else:
            self._count += 1
            headers[b":path"] = words[1]
            stream = Stream(self._count, 0, self._now)
            stream.headers = headers
            self._left = stream.held = int(length)
            self._budget.left -= stream.held
            self._stream = stream
            if not self._left:
                self._complete(stream)

    def _complete(self, stream: Stream) -> None:
        stream.ended = True
        body = stream.body
        if len(body) < 5 or struct.unpack(">BI", body[:5]) != (0, len(body) - 5):
            self.fail(stream, faults.INTERNAL, "the request has no complete message")
            return
        stream.body = body[5:]
        self.ready.append(stream)

    def answer(self, stream: Stream, message: "bytes | bytearray") -> None:
        """Answer a call of `ready`."""
        if len(message) > self.bounds.reply:
            text = f"the reply has {len(message)} bytes, and this server sends {self.bounds.reply}"
            self.fail(stream, faults.EXHAUSTED, text)
            return
        self._send(stream, message, b"grpc-status:0\r\n")

    def fail(self, stream: Stream, status: int, text: str) -> None:
        """Answer a call with a gRPC status."""
        trailers = b"grpc-status:" + str(status).encode() + b"\r\ngrpc-message:" + percent(text) + b"\r\n"
        self._send(stream, None, trailers)

    def _send(self, stream: Stream, message: "bytes | bytearray | None", trailers: bytes) -> None:
        if stream is not self._stream:
            return
        size = len(trailers) + 5 + (0 if message is None else len(message) + 5)
        self._out += b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc-web+proto\r\ncontent-length: "
        self._out += str(size).encode() + b"\r\n\r\n"
        if message is not None:
            self._out += struct.pack(">BI", 0, len(message))
            self._out += message
        self._out += struct.pack(">BI", TRAILERS, len(trailers))
        self._out += trailers
        self.used = self._now
        self._free()

    def _free(self) -> None:
        if self._stream is not None:
            self._budget.left += self._stream.held
            self._stream = None
            self._left = 0

    def _refuse(self, status: int, text: str) -> None:
        reason = REASONS[status]
        body = text.encode()
        self._out += f"HTTP/1.1 {status} {reason}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        self._out += body
        self.over = text

    def output(self) -> bytes:
        """Return the next bytes to send, and count them as sent."""
        out, self._out = self._out, bytearray()
        return bytes(out)

    def tick(self, now: int) -> None:
        """Apply the time limits."""
        self._now = now
        bounds = self.bounds
        if self.over:
            return
        if not self.trusted and now - self.began > bounds.authentication_ms:
            self.over = "the peer has not authenticated itself"
        elif (self._head or self._left) and now - self.heard > bounds.request_ms:
            self.over = "the request takes too long to arrive"
        elif self._stream is None and now - max(self.used, self.heard) > KEEP_ALIVE_MS:
            self.over = "the connection is idle"

    def close(self, text: str) -> None:
        """End the connection."""
        self.over = self.over or text

    def fail_all(self) -> "list[Stream]":
        """Forget the call after the connection was lost, and return it."""
        streams = [] if self._stream is None else [self._stream]
        self.over = self.over or "the connection was lost"
        for stream in streams:
            stream.failure = (faults.UNAVAILABLE, self.over)
        self._free()
        return streams
