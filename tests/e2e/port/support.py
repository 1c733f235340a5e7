"""A port on loopback with a few methods and pages, and its clients."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from rpc.access.auth import Authenticator, Credential
from rpc.access.credential_types import API_KEY
from rpc.access.guard import Guard
from rpc.call import ServerCore
from rpc.http.limits import HttpLimits
from rpc.limits import Limits
from rpc.network.listeners import open_listeners
from rpc.network.tls import ServerTls
from rpc.server.auth_service import AuthRouter
from rpc.server.port import serve
from tests.selfsigned import write_self_signed
from tests.unit.rpc.http1.support import Methods

KEY_ID = "3c61e4a8-5f0a-4d6b-9c1f-0a1b2c3d4e5f"
KEY = "key-of-the-test"


async def show(request: Request) -> PlainTextResponse:
    return PlainTextResponse(
        f"{request.scope['scheme']} {request.scope['http_version']} {(await request.body()).decode()}"
    )


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    async for text in socket.iter_text():
        await socket.send_text(text)


PAGES = Starlette(routes=[Route("/", show, methods=["GET", "POST"]), WebSocketRoute("/ws", echo)])


@dataclass
class Port:
    number: int
    core: ServerCore
    methods: Methods
    authenticator: Authenticator
    tls: ServerTls | None
    nursery: trio.Nursery
    serving: trio.CancelScope

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://localhost:{self.number}"

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.number)

    async def raw(self, data: bytes) -> bytes:
        """Send bytes, then read until the server closes the connection."""
        stream = await self.connect()
        async with stream:
            await stream.send_all(data)
            received = b""
            try:
                while more := await stream.receive_some(65536):
                    received += more
            except trio.BrokenResourceError:
                pass
            return received


@asynccontextmanager
async def port(
    folder: Path | None = None,
    *,
    keys: bool = False,
    limits: Limits | None = None,
    http: HttpLimits | None = None,
    app: Any = PAGES,
    inner: Any = None,
) -> AsyncIterator[Port]:
    """Run a port; with TLS if a `folder` is passed."""
    methods = Methods()
    authenticator = Authenticator(credentials=[Credential(API_KEY, KEY_ID, KEY)] if keys else [])
    core = ServerCore(
        AuthRouter(inner or methods.router(), authenticator),
        authorize=authenticator.authorize,
        limits=limits or Limits(),
    )
    tls = None
    if folder is not None:
        write_self_signed(folder / "cert.pem", folder / "key.pem")
        tls = ServerTls(folder / "cert.pem", folder / "key.pem")
    listeners = await open_listeners("localhost:0")
    number = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        guard = Guard(app, authenticator)

        scope = trio.CancelScope()

        async def run(*, task_status: trio.TaskStatus[Any]) -> None:
            with scope:
                await serve(listeners, core, app=guard, tls=tls, limits=http, task_status=task_status)

        await nursery.start(run)
        with trio.fail_after(30):
            yield Port(number, core, methods, authenticator, tls, nursery, scope)
        scope.cancel()


CURL = shutil.which("curl")


async def curl(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    assert CURL is not None
    return await trio.run_process(
        [CURL, "--silent", "--show-error", "--max-time", "10", "--noproxy", "*", *arguments],
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
