"""Connections that the micro server opens: calls of its cloud, and WebSockets."""

import asyncio
import binascii
import hashlib
import os

from micro.hosts.loop import CHUNK, close
from micro.wire import protobuf, websocket
from micro.wire.bounds import Bounds
from micro.wire.faults import UNAVAILABLE, CallFailure
from micro.wire.http2 import Budget, Connection, failure_of
from micro.wire.websocket import BINARY, PING, TEXT, WebSocket, WebSocketFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIMIT_S = 15  # seconds for a connection, and for a call
NODELAY = (6, 1, 1)


class Site:
    """The address of a cloud: http://HOST:PORT, or https with the context for its certificate."""

    def __init__(self, url: str, context: "Any" = None) -> None:
        scheme, separator, rest = url.partition("://")
        self.authority = rest.rstrip("/")
        host, _, port = self.authority.rpartition(":")
        self.secure = scheme == "https"
        if not separator or scheme not in ("http", "https") or "/" in self.authority or not self.authority:
            raise ValueError(f"{url!r} is not an address such as https://cloud.example or http://10.0.0.2:8090")
        self.host = host or self.authority
        self.port = int(port) if host else 443 if self.secure else 80
        self.context = context

    async def open(self) -> "tuple[Any, Any]":
        """Return a reader and a writer of a new connection. OSError if that fails."""
        try:
            if self.secure:
                opening = asyncio.open_connection(self.host, self.port, ssl=self.context, server_hostname=self.host)
            else:
                opening = asyncio.open_connection(self.host, self.port)
            reader, writer = await asyncio.wait_for(opening, LIMIT_S)
        except asyncio.TimeoutError:
            raise OSError("no answer") from None
        except ValueError as error:  # of TLS in MicroPython
            raise OSError(str(error)) from None
        if hasattr(writer, "s") and hasattr(writer.s, "setsockopt"):
            writer.s.setsockopt(*NODELAY)
        return reader, writer


class CloudChannel:
    """Calls over one connection, one after the other."""

    def __init__(self, site: Site, bounds: Bounds, now: "Any") -> None:
        self._site = site
        self._now = now
        self._connection = Connection(bounds, Budget(bounds.held), now(), client=True)
        self._reader: Any = None
        self._writer: Any = None

    async def call(
        self, row: "tuple[str, str, int, int, bool]", service: str, values: "dict[str, Any]", token: str = ""
    ) -> "dict[str, Any]":
        """Call a row of a service and return the fields of its reply. CallFailure or OSError."""
        try:
            return await asyncio.wait_for(self._call(row, service, values, token), LIMIT_S)
        except asyncio.TimeoutError:
            raise CallFailure(UNAVAILABLE, f"no answer to {row[0]} within {LIMIT_S} s") from None

    async def _call(
        self, row: "tuple[str, str, int, int, bool]", service: str, values: "dict[str, Any]", token: str
    ) -> "dict[str, Any]":
        if self._writer is None:
            self._reader, self._writer = await self._site.open()
        connection = self._connection
        message = protobuf.encode(row[2], values)
        stream = connection.call(f"/{service}/{row[0]}", self._site.authority, message, token)
        while stream not in connection.ready:
            while True:
                data = connection.output()
                if not data:
                    break
                self._writer.write(data)
                await self._writer.drain()
            data = b"" if connection.over else await self._reader.read(CHUNK)
            if not data:
                raise CallFailure(UNAVAILABLE, connection.over or "the connection was lost")
            connection.receive(data, self._now())
        connection.ready.remove(stream)
        failure = failure_of(stream)
        if failure is not None:
            raise failure
        return protobuf.decode(row[3], stream.body)

    async def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            await close(writer)


class SocketStream:
    """A WebSocket as reader and writer of bytes, and of texts."""

    def __init__(self, reader: "Any", writer: "Any", max_text: int) -> None:
        self._reader = reader
        self._writer = writer
        self._socket = WebSocket(max_text, os.urandom)
        self._out = bytearray()
        self.seen = 0  # bytes that have arrived, by which silence is noticed

    async def _receive(self) -> bool:
        """Read once; return whether the WebSocket is open. OSError for a peer that breaks a rule."""
        data = await self._reader.read(CHUNK)
        if not data:
            return False
        self.seen += len(data)
        try:
            self._socket.receive(data)
        except WebSocketFault as fault:
            raise OSError(str(fault)) from None
        await self._flush()  # such as the answer to a ping
        return not self._socket.closed

    async def _flush(self) -> None:
        data = self._socket.output()
        if data:
            self._writer.write(data)
            await self._writer.drain()

    async def text(self) -> bytes:
        """Return the next message of text, or nothing if the WebSocket was closed."""
        while not self._socket.texts:
            if not await self._receive():
                return b""
        return self._socket.texts.pop(0)

    async def send_text(self, data: bytes) -> None:
        """Send a message of text."""
        self._socket.send(TEXT, data)
        await self._flush()

    async def ping(self) -> None:
        """Send a ping, whose answer shows that the peer is there."""
        self._socket.send(PING, b"")
        await self._flush()

    async def read(self, count: int) -> bytes:
        """Return bytes of binary messages, or nothing if the WebSocket was closed."""
        while not self._socket.data:
            if not await self._receive():
                return b""
        data = bytes(self._socket.data[:count])
        self._socket.data = self._socket.data[count:]
        return data

    def write(self, data: bytes) -> None:
        """Queue bytes."""
        self._socket.send(BINARY, data)

    async def drain(self) -> None:
        """Send what is queued."""
        await self._flush()

    def close(self) -> None:
        """Close; see `wait_closed`."""

    async def wait_closed(self) -> None:
        """Close the connection."""
        await close(self._writer)


async def open_websocket(site: Site, path: str, token: str, max_text: int) -> SocketStream:
    """Open a WebSocket. OSError if that fails, PermissionError's number 13 if the token is not valid."""
    reader, writer = await site.open()
    try:
        key = binascii.b2a_base64(os.urandom(16)).strip()
        accept = b""  # some builds of MicroPython have no SHA-1; it only protects from servers of other protocols
        if hasattr(hashlib, "sha1"):
            accept = binascii.b2a_base64(hashlib.sha1(key + websocket.GUID).digest()).strip()
        writer.write(websocket.request(site.authority, path, key, token))
        await writer.drain()
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = await asyncio.wait_for(reader.readline(), LIMIT_S)
            head += line
            if not line or len(head) > websocket.MAX_HEAD:
                raise OSError("the answer to the handshake of a WebSocket is not complete")
        status = websocket.status_of(head, accept)
        if status != 101:
            raise OSError(13 if status == 401 else 5, f"the cloud answers {status}")
    except asyncio.TimeoutError:
        await close(writer)
        raise OSError("no answer to the handshake of a WebSocket") from None
    except WebSocketFault as fault:
        await close(writer)
        raise OSError(str(fault)) from None
    except OSError:
        await close(writer)
        raise
    return SocketStream(reader, writer, max_text)
