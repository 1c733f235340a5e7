"""The client's side of a WebSocket (RFC 6455), without input and output: its handshake, and frames both ways. Pure."""

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
MAX_HEAD = 2048
MAX_CONTROL = 125
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class WebSocketFault(Exception):
    """The peer broke a rule of WebSockets, or its message is too long."""


def request(host: str, path: str, key: bytes, token: str) -> bytes:
    """Return the request that opens a WebSocket; `key` is the base64 of 16 random bytes."""
    return (
        f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {str(key, 'utf-8')}\r\nAuthorization: Bearer {token}\r\n\r\n"
    ).encode()


def status_of(head: bytes, accept: bytes) -> int:
    """Return the HTTP status of an answer; WebSocketFault unless it is 101 with the expected `accept`, or an error.

    An empty `accept` is not compared.
    """
    lines = head.split(b"\r\n")
    words = lines[0].split(b" ")
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.1") or not words[1].isdigit():
        raise WebSocketFault("the answer is not HTTP/1.1")
    status = int(words[1])
    if status == 101:
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"sec-websocket-accept" and value.strip() == (accept or value.strip()):
                return status
        raise WebSocketFault("the answer does not accept our key")
    return status


class WebSocket:
    """The frames of one WebSocket. `text` collects messages of text, `data` the bytes of binary ones."""

    def __init__(self, max_message: int, random: "Callable[[int], bytes]") -> None:
        self.closed = False
        self.texts: list[bytes] = []
        self.data = bytearray()
        self._most = max_message
        self._random = random
        self._head = bytearray()
        self._need = 2
        self._left = 0
        self._kind = 0
        self._final = False
        self._part = bytearray()
        self._message = 0  # kind of the message that is not complete
        self._text = bytearray()
        self._out = bytearray()

    def receive(self, data: bytes) -> None:
        """Take bytes of the peer."""
        at = 0
        while at < len(data) and not self.closed:
            if len(self._head) < self._need:
                part = data[at : at + self._need - len(self._head)]
                self._head += part
                at += len(part)
                if len(self._head) == self._need:
                    self._begin()
                continue
            part = data[at : at + self._left]
            at += len(part)
            self._left -= len(part)
            self._take(part)
            if not self._left:
                self._finish()

    def _begin(self) -> None:
        size = self._head[1]
        if size & 128 or self._head[0] & 0x70:
            raise WebSocketFault("a frame is masked or uses an extension")
        if self._need == 2 and size > 125:
            self._need = 4 if size == 126 else 10
            return
        if self._need == 4:
            size = struct.unpack(">H", self._head[2:])[0]
        elif self._need == 10:
            size = struct.unpack(">Q", self._head[2:])[0]
        self._left = size
        self._kind, self._final = self._head[0] & 15, bool(self._head[0] & 128)
        if self._kind >= CLOSE:
            if size > MAX_CONTROL or not self._final:
                raise WebSocketFault("a control frame is too long")
        elif (self._kind == CONTINUED) != (self._message != 0):
            raise WebSocketFault("a message begins within another one, or continues nothing")
        else:
            self._message = self._message or self._kind
            if self._message == TEXT and len(self._text) + size > self._most:
                raise WebSocketFault(f"a message is longer than {self._most} bytes")
        if not size:
            self._finish()

    def _take(self, part: bytes) -> None:
        if self._kind >= CLOSE:
            self._part += part
        elif self._message == TEXT:
            self._text += part
        else:
            self.data += part

    def _finish(self) -> None:
        self._head = bytearray()
        self._need = 2
        if self._kind >= CLOSE:
            part, self._part = self._part, bytearray()
            if self._kind == PING:
                self.send(PONG, bytes(part))
            elif self._kind == CLOSE:
                self.send(CLOSE, bytes(part[:2]))
                self.closed = True
        elif self._final:
            if self._message == TEXT:
                self.texts.append(bytes(self._text))
                self._text = bytearray()
            self._message = 0

    def send(self, kind: int, data: bytes) -> None:
        """Queue a frame; those of clients are masked."""
        size = len(data)
        if kind == PONG and len(self._out) > 1024:
            raise WebSocketFault("the peer sends pings and reads nothing")
        self._out.append(128 | kind)
        if size < 126:
            self._out.append(128 | size)
        elif size < 65536:
            self._out += struct.pack(">BH", 254, size)
        else:
            self._out += struct.pack(">BQ", 255, size)
        mask = self._random(4)
        self._out += mask
        start = len(self._out)
        self._out += data
        for index in range(size):
            self._out[start + index] ^= mask[index & 3]

    def output(self) -> bytes:
        """Return the bytes to send, and count them as sent."""
        out, self._out = self._out, bytearray()
        return bytes(out)
