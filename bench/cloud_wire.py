"""Raw connections of many simulated machines in one thread: gRPC over HTTP/2, and WebSocket for the push channel.

Requests are encoded once and patched, and replies are hardly parsed, so that a call costs far less here than in the
cloud.
"""

from __future__ import annotations

import base64
import heapq
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Final

import hpack

from rpc.access.credential_types import AUTHENTICATE
from rpc.http2.codec import frames

WINDOW: Final = 1 << 22  # receive window in bytes
CHUNK: Final = 16_384  # bytes per DATA frame; RFC 9113, 6.5.2
Then = Callable[[bytes], None]
"""Callback for the reply message; empty bytes if the call was rejected."""


class Crowd:
    """All connections and scheduled calls. `run` serves them."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._lines: dict[int, Line] = {}
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def add(self, line: Line, *, writing: bool = True) -> None:
        """Serve a connection, which may still be connecting."""
        self._lines[line.fileno()] = line
        self._poll.register(line.fileno(), select.EPOLLIN | (select.EPOLLOUT if writing else 0))

    def change(self, line: Line, *, writing: bool) -> None:
        """Set whether to wait until the connection is writable."""
        self._poll.modify(line.fileno(), select.EPOLLIN | (select.EPOLLOUT if writing else 0))

    def remove(self, line: Line) -> None:
        """Stop serving a connection. Call this before closing it."""
        self._poll.unregister(line.fileno())
        del self._lines[line.fileno()]

    def at(self, moment: float, function: Callable[[], None]) -> None:
        """Schedule a call of `function` at a time of time.perf_counter."""
        self._count += 1
        heapq.heappush(self._later, (moment, self._count, function))

    def run(self, done: Callable[[], bool], until: float = float("inf")) -> None:
        """Serve all connections until `done` returns True or the time `until`."""
        while not done():
            now = time.perf_counter()
            if now >= until:
                return
            while self._later and self._later[0][0] <= now:
                heapq.heappop(self._later)[2]()
            next_ = min(until, self._later[0][0] if self._later else until)
            wait = -1 if next_ == float("inf") else max(0.0, next_ - time.perf_counter())
            for number, events in self._poll.poll(wait):
                line = self._lines.get(number)
                if line is not None:
                    line.serve(events)


class Line:
    """One TCP connection."""

    def __init__(self, crowd: Crowd, address: tuple[str, int], ended: Callable[[], None]) -> None:
        self.crowd = crowd
        self._ended = ended
        self._out = bytearray()
        self._in = b""
        self._connected = False
        self._socket = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.connect_ex(address)
        crowd.add(self)

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the connection without calling `ended`."""
        if self.fileno() >= 0:
            self.crowd.remove(self)
            self._socket.close()

    def send(self, data: bytes) -> None:
        """Write data, immediately as far as the kernel accepts it."""
        if self.fileno() < 0:
            return
        self._out += data
        if self._connected and len(self._out) == len(data):
            self._flush()

    def serve(self, events: int) -> None:
        """Handle events of epoll."""
        try:
            if not self._connected:
                if events & select.EPOLLHUP or self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    return self._end()
                if not events & select.EPOLLOUT:
                    return None
                self._connected = True
            if events & select.EPOLLOUT:
                self._flush(waited=True)
            if events & (select.EPOLLIN | select.EPOLLHUP):
                data = self._socket.recv(1 << 18)
                if not data:
                    return self._end()
                self._in = self.read(self._in + data if self._in else data)
        except BlockingIOError:
            pass
        except OSError:
            self._end()

    def read(self, data: bytes) -> bytes:
        """Process received data; return an incomplete rest."""
        raise NotImplementedError

    def _flush(self, *, waited: bool = False) -> None:
        sent = 0
        try:
            while sent < len(self._out):
                sent += self._socket.send(memoryview(self._out)[sent:])
        except BlockingIOError:
            pass
        del self._out[:sent]
        if bool(self._out) == waited:
            return
        self.crowd.change(self, writing=bool(self._out))

    def _end(self) -> None:
        self.close()
        self._ended()


class Caller(Line):
    """A connection for unary calls, one at a time."""

    def __init__(self, crowd: Crowd, address: tuple[str, int], ended: Callable[[], None]) -> None:
        super().__init__(crowd, address, ended)
        self._encoder = hpack.Encoder()
        self._blocks: dict[str, tuple[int, bytes]] = {}
        self._authority = f"localhost:{address[1]}"
        self._token = ""
        self._sid = -1
        self._reply = b""
        self._heads: list[bytes] = []  # parsed only if a call was rejected
        self._then: Then | None = None
        self._owed = 0
        self._body = b""  # not sent yet
        self._window = self._stream_window = self._initial = frames.DEFAULT_WINDOW
        settings = frames.settings([(frames.INITIAL_WINDOW_SIZE, WINDOW), (frames.ENABLE_PUSH, 0)])
        self.send(frames.PREFACE + settings + frames.window_update(0, WINDOW))

    @property
    def busy(self) -> bool:
        """Whether a call is in progress."""
        return self._then is not None

    def refusal(self) -> str:
        """Return status and message of the last rejection."""
        decoder = hpack.Decoder()
        headers = [dict(decoder.decode(block)) for block in self._heads]
        return f"{headers[-1].get('grpc-status')}: {headers[-1].get('grpc-message')}" if headers else "nothing"

    def sign_in(self, request: bytes, then: Then) -> None:
        """Authenticate, and send the token with all further calls."""

        def signed(reply: bytes) -> None:
            self._token = token_of(reply)
            then(reply)

        self.call(AUTHENTICATE, request, signed)

    def call(self, path: str, request: bytes, then: Then) -> None:
        """Start a call. The previous call must have ended."""
        assert self._then is None
        self._sid += 2
        self._then, self._reply = then, b""
        self._body = struct.pack(">BI", 0, len(request)) + request
        self._stream_window = self._initial
        self.send(frames.frame(frames.HEADERS, frames.END_HEADERS, self._sid, self._block(path)) + self._ready())

    def _block(self, path: str) -> bytes:
        """Return the headers: from the second call on, table indexes only, until the path changes."""
        if path not in self._blocks:
            self._blocks.clear()  # indexes are relative to the last entry
        used, block = self._blocks.get(path, (0, b""))
        if used < 2:
            headers = [
                (":method", "POST"),
                (":scheme", "http"),
                (":path", path),
                (":authority", self._authority),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                ("user-agent", "machine-bench"),
            ]
            if self._token:
                headers.append(("authorization", f"Bearer {self._token}"))
            block = self._encoder.encode(headers)
            self._blocks[path] = used + 1, block
        return block

    def _ready(self) -> bytes:
        """Return frames of the request as far as the flow control windows allow."""
        out = []
        while self._body and (size := min(CHUNK, len(self._body), self._window, self._stream_window)) > 0:
            piece, self._body = self._body[:size], self._body[size:]
            self._window -= size
            self._stream_window -= size
            out.append(frames.frame(frames.DATA, 0 if self._body else frames.END_STREAM, self._sid, piece))
        return b"".join(out)

    def read(self, data: bytes) -> bytes:
        """Process all complete frames; see `Line.read`."""
        position, size = 0, len(data)
        while size - position >= frames.HEAD:
            length = data[position] << 16 | data[position + 1] << 8 | data[position + 2]
            begin = position + frames.HEAD
            if begin + length > size:
                break
            kind, flags = data[position + 3], data[position + 4]
            stream = int.from_bytes(data[position + 5 : begin], "big")
            position = begin + length
            self._frame(kind, flags, stream, data[begin:position])
        return data[position:]

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == frames.HEADERS:
            self._heads.append(payload)
        elif kind == frames.DATA:
            self._reply += payload
            self._owed += len(payload)
            if self._owed > WINDOW // 4:
                self.send(frames.window_update(0, self._owed))
                self._owed = 0
        elif kind == frames.SETTINGS and not flags & frames.ACK:
            for place in range(0, len(payload), 6):
                key, value = struct.unpack_from(">HI", payload, place)
                if key == frames.INITIAL_WINDOW_SIZE:
                    self._stream_window += value - self._initial
                    self._initial = value
            self.send(frames.SETTINGS_ACK + self._ready())
        elif kind == frames.WINDOW_UPDATE:
            increment = int.from_bytes(payload, "big")
            if stream == 0:
                self._window += increment
            elif stream == self._sid:
                self._stream_window += increment
            if self._body:
                self.send(self._ready())
        elif kind == frames.PING and not flags & frames.ACK:
            self.send(frames.ping(payload, ack=True))
        ended = flags & frames.END_STREAM and kind in (frames.DATA, frames.HEADERS)
        if (ended or kind == frames.RST_STREAM) and stream == self._sid and self._then is not None:
            then, self._then, self._body = self._then, None, b""
            then(self._reply if kind != frames.RST_STREAM else b"")


class Follower(Line):
    """A push channel. `heard` is called with the text of each message."""

    def __init__(
        self,
        crowd: Crowd,
        address: tuple[str, int],
        target: str,
        token: str,
        heard: Callable[[bytes], None],
        ended: Callable[[], None],
    ) -> None:
        super().__init__(crowd, address, ended)
        self._heard = heard
        self._open = False
        self._message = b""
        key = base64.b64encode(bytes(16)).decode()
        self.send(
            f"GET {target} HTTP/1.1\r\nHost: localhost:{address[1]}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        )

    def tell(self, text: bytes) -> None:
        """Send a text message, masked with zeros."""
        size = len(text)
        head = bytes((0x81, 0x80 | size)) if size < 126 else bytes((0x81, 0xFE)) + struct.pack(">H", size)
        self.send(head + bytes(4) + text)

    def read(self, data: bytes) -> bytes:
        """Process the answer to the upgrade, then complete frames (RFC 6455, 5.2); see `Line.read`."""
        if not self._open:
            head, separator, data = data.partition(b"\r\n\r\n")
            if not separator:
                return head
            if b" 101 " not in head.partition(b"\r\n")[0]:
                raise ConnectionRefusedError(head.decode(errors="replace"))
            self._open = True
        while len(data) >= 2:
            size, begin = data[1], 2
            if size >= 126:
                begin = 4 if size == 126 else 10
                size = int.from_bytes(data[2:begin], "big")
            if len(data) < begin + size or len(data) < begin:
                break
            self._frame(data[0], data[begin : begin + size])
            data = data[begin + size :]
        return data

    def _frame(self, first: int, payload: bytes) -> None:
        code = first & 15
        if code in (0, 1):
            self._message += payload
            if first & 128:
                message, self._message = self._message, b""
                self._heard(message)
        elif code == 8:
            raise ConnectionResetError
        elif code == 9:  # ping: reply with a pong of the same payload, masked with zeros
            self.send(bytes((0x8A, 0x80 | len(payload))) + bytes(4) + payload)


def token_of(reply: bytes) -> str:
    """Return the token in the reply of Authenticate; "" if it was rejected."""
    from rpc.api import messages

    return str(messages.auth().AuthenticateResponse.FromString(reply[5:]).access_token) if reply else ""
