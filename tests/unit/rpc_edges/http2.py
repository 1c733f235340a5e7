"""A server of HTTP/2 in memory, and what browsers ask it, made of the `h2` library."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import trio
import trio.testing
from google.protobuf.wrappers_pb2 import StringValue

from rpc.asgi import fallback
from rpc.call import ServerCore
from rpc.http2_server import ServerConnection, serve_http2
from rpc.http_limits import HttpLimits
from rpc.limits import Limits
from tests.unit.rpc_core.h2_peer import Answer, H2Client
from tests.unit.rpc_edges import support
from tests.unit.rpc_edges.support import Methods, frame

BASE = [(":method", "POST"), (":scheme", "https"), (":authority", "localhost:8080")]
ORIGIN = "https://page.example"


def web(method: str, *extra: tuple[str, str], text: bool = False) -> list[tuple[str, str]]:
    """The fields that Chromium sends for grpc-web's fetch transport."""
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
        while body:  # each flush is padded by itself
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
