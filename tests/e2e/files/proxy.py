"""A proxy that forwards requests to a real store, except for the faults that a test has selected."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto

import h11
import trio

from tests.loopback import listening

SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>"
BROKEN = b"<Error><Code>InternalError</Code><Message>We encountered an internal error</Message></Error>"


class Way(Enum):
    """A fault, instead of the usual answer."""

    ERROR = auto()  # 500, not executed
    SLOW_DOWN = auto()  # 503, not executed
    ERROR_200 = auto()  # status 200 with an error in the body, not executed
    CUT = auto()  # the connection closes after half of the request, not executed
    LOST = auto()  # executed, but the connection closes before the answer
    HALF = auto()  # executed, but the connection closes in the middle of the answer's body
    SHORT = auto()  # executed, but the answer has fewer bytes than its range says
    OTHER = auto()  # executed, but the answer claims another range
    GONE = auto()  # there is no such multipart upload
    EXPIRED = auto()  # the credentials have expired, not executed
    HANG = auto()  # not executed, and no answer


@dataclass
class Request:
    """A received request."""

    method: str
    target: str
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def kind(self) -> str:
        """Return the method, with the parameter that identifies the operation."""
        query = self.target.partition("?")[2]
        for word in ("partNumber=", "uploadId=", "uploads=", "list-type="):
            if word in query:
                return f"{self.method} {word.rstrip('=')}"
        return self.method


@dataclass
class Proxy:
    """Apply `faults` to the next requests of their kind; call `before` with each request before it is forwarded."""

    port: int
    endpoint: str = ""
    asked: list[str] = field(default_factory=list)
    faults: list[tuple[str, Way]] = field(default_factory=list)
    always: dict[str, Way] = field(default_factory=dict)
    before: Callable[[Request], None] = lambda request: None
    hanging: trio.Event = field(default_factory=trio.Event)
    gate: trio.Event | None = None  # every request waits for it
    busy: int = 0  # requests without an answer so far

    async def serve(self, near: trio.SocketStream) -> None:
        """Serve a connection of a client."""
        try:
            async with near:
                connection = h11.Connection(h11.SERVER)
                while (request := await self._request(near, connection)) is not None:
                    self.busy += 1
                    try:
                        if not await self._answer(near, connection, request):
                            return
                    finally:
                        self.busy -= 1
                    connection.start_next_cycle()
        except (trio.BrokenResourceError, h11.RemoteProtocolError):
            pass  # the client has disconnected

    def _way(self, kind: str) -> Way | None:
        for place, (fault, way) in enumerate(self.faults):
            if fault == kind:
                del self.faults[place]
                return way
        return self.always.get(kind)

    async def _request(self, near: trio.SocketStream, connection: h11.Connection) -> Request | None:
        request: Request | None = None
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await near.receive_some())
            elif isinstance(event, h11.Request):
                request = Request(event.method.decode(), event.target.decode(), list(event.headers), b"")
                if request.method == "PUT" and ("PUT", Way.CUT) in self.faults:
                    self.faults.remove(("PUT", Way.CUT))
                    self.asked.append(request.kind)
                    return None  # the rest of it is still being sent
            elif isinstance(event, h11.Data):
                assert request is not None
                request.body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return request
            else:
                return None

    async def _answer(self, near: trio.SocketStream, connection: h11.Connection, request: Request) -> bool:
        """Answer a request; return whether the connection stays open."""
        self.asked.append(request.kind)
        self.before(request)
        if self.gate is not None:
            await self.gate.wait()
        way = self._way(request.kind)
        if way is Way.CUT:
            return False
        if way is Way.HANG:
            self.hanging.set()
            await trio.sleep_forever()
        expired = b"<Error><Code>ExpiredToken</Code></Error>"
        own = {
            Way.EXPIRED: (400, expired),
            Way.GONE: (404, b"<Error><Code>NoSuchUpload</Code></Error>"),
            Way.ERROR: (500, BROKEN),
            Way.SLOW_DOWN: (503, SLOW_DOWN),
            Way.ERROR_200: (200, BROKEN),
        }
        if way in own:
            status, body = own[way]
            await _send(near, connection, status, [], body)
            return True
        status, headers, body = await self._passed_on(request)
        if way is Way.LOST:
            return False
        if way is Way.OTHER:
            headers = [(name, b"bytes 0-9/10" if name == b"content-range" else value) for name, value in headers]
        if way is Way.SHORT:
            body = body[: len(body) // 2]
        if way is Way.HALF:
            head = h11.Response(status_code=status, headers=[*headers, (b"content-length", b"%d" % len(body))])
            await near.send_all(connection.send(head) or b"")
            await near.send_all(connection.send(h11.Data(data=body[: len(body) // 2])) or b"")
            return False
        await _send(near, connection, status, headers, body, head=request.method == "HEAD")
        return True

    async def _passed_on(self, request: Request) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        far = h11.Connection(h11.CLIENT)
        async with await trio.open_tcp_stream("127.0.0.1", self.port) as stream:
            kept = [(name, value) for name, value in request.headers if name != b"connection"]
            head = h11.Request(
                method=request.method, target=request.target, headers=[*kept, (b"connection", b"close")]
            )  # fmt: skip
            await stream.send_all(far.send(head) or b"")
            if request.body:
                await stream.send_all(far.send(h11.Data(data=request.body)) or b"")
            await stream.send_all(far.send(h11.EndOfMessage()) or b"")
            status, headers, body = 0, [], bytearray()
            while True:
                event = far.next_event()
                if event is h11.NEED_DATA:
                    far.receive_data(await stream.receive_some())
                elif isinstance(event, h11.Response):
                    status, headers = event.status_code, list(event.headers)
                elif isinstance(event, h11.Data):
                    body += event.data
                else:
                    break
        drop = {b"connection", b"transfer-encoding"} | ({b"content-length"} if request.method != "HEAD" else set())
        return status, [(name, value) for name, value in headers if name not in drop], bytes(body)


async def _send(
    near: trio.SocketStream,
    connection: h11.Connection,
    status: int,
    headers: list[tuple[bytes, bytes]],
    body: bytes,
    head: bool = False,
) -> None:
    length = [] if head else [(b"content-length", b"%d" % len(body))]
    data = connection.send(h11.Response(status_code=status, headers=[*headers, *length])) or b""
    if body and not head:
        data += connection.send(h11.Data(data=body)) or b""
    await near.send_all(data + (connection.send(h11.EndOfMessage()) or b""))


@asynccontextmanager
async def proxy(port: int) -> AsyncIterator[Proxy]:
    """Yield a proxy in front of a store on loopback, until the block ends."""
    front = Proxy(port)
    async with listening(front.serve) as near:
        front.endpoint = f"http://127.0.0.1:{near}"
        yield front
