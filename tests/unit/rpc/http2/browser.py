"""An HTTP/2 server on memory streams, and browser requests built with the `h2` library."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import trio
import trio.testing
from google.protobuf.wrappers_pb2 import StringValue

from rpc.call import ServerCore
from rpc.http.asgi import fallback
from rpc.http.limits import HttpLimits
from rpc.http2.server import ServerConnection, serve_http2
from rpc.limits import Limits
from tests.unit.rpc.h2_peer import Answer, H2Client
from tests.unit.rpc.http1 import support
from tests.unit.rpc.http1.support import Methods, frame

BASE = [(":method", "POST"), (":scheme", "https"), (":authority", "localhost:8080")]
ORIGIN = "https://page.example"


def web(method: str, *extra: tuple[str, str], text: bool = False) -> list[tuple[str, str]]:
    """Return the header fields that Chromium sends with the fetch transport of grpc-web."""
    return [
        *BASE,
        (":path", f"/test.Echo/{method}"),
        ("content-type", "application/grpc-web-text" if text else "application/grpc-web+proto"),
        ("accept", "application/grpc-web-text" if text else "application/grpc-web+proto"),
        ("x-grpc-web", "1"),
        ("x-user-agent", "grpc-web-javascript/0.1"),
        ("origin", ORIGIN),
        ("sec-fetch-mode", "cors"),
        ("referer", f"{ORIGIN}/"),
        ("cookie", "session=1"),
        ("accept-encoding", "gzip, deflate, br"),
        *extra,
    ]


def page(path: str = "/", method: str = "GET", *extra: tuple[str, str]) -> list[tuple[str, str]]:
    return [(":method", method), *BASE[1:], (":path", path), *extra]


def messages(*values: str) -> bytes:
    return b"".join(frame(StringValue(value=value).SerializeToString()) for value in values)


def read(answer: Answer) -> support.Response:
    body = answer.body
    if "text" in answer.headers["content-type"]:
        decoded = b""
        while body:  # each flush is padded separately
            end = len(body) if b"=" not in body else (body.index(b"=") | 3) + 1
            decoded, body = decoded + base64.b64decode(body[:end], validate=True), body[end:]
        body = decoded
    return support.Response(answer.status, answer.headers, body)


@dataclass
class Server:
    core: ServerCore
    methods: Methods
    nursery: trio.Nursery

    async def connect(self, *, acknowledges: bool = True) -> H2Client:
        near, far = trio.testing.memory_stream_pair()
        self.nursery.start_soon(serve_http2, far, self.core)
        client = H2Client(near, acknowledges=acknowledges)
        await client.start()
        return client

    @property
    def connection(self) -> ServerConnection:
        (connection,) = self.core._connections
        assert isinstance(connection, ServerConnection)
        return connection


@asynccontextmanager
async def serving(app: Any = None, *, limits: Limits | None = None, **core: Any) -> AsyncIterator[Server]:
    methods = Methods()
    shared = ServerCore(methods.router(), limits=limits or Limits(), **core)
    if app is not None:
        shared.fallback = fallback(app, HttpLimits(max_body=1_000_000))
    async with trio.open_nursery() as nursery:
        yield Server(shared, methods, nursery)
        nursery.cancel_scope.cancel()
