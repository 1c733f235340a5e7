"""A browser without a network: it sends requests and WebSockets directly to an ASGI application."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import trio
from starlette.types import ASGIApp

HTML = {"accept": "text/html"}
JSON = {"accept": "application/json"}
LIMIT = 20.0  # seconds for an application to end after its client has disconnected, usually a matter of milliseconds


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class Browser:
    """Send requests and keep cookies; `state` is what the guard of the port would add."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        client: tuple[str, int] | None = ("127.0.0.1", 50000),
        state: Mapping[str, Any] | None = None,
        host: str = "rover-7:8080",
    ) -> None:
        self.app = app
        self.client = client
        self.state = dict(state or {})
        self.host = host
        self.cookies: dict[str, str] = {}

    def _scope(self, kind: str, target: str, headers: Mapping[str, str]) -> dict[str, Any]:
        path, _, query = target.partition("?")
        fields = {"host": self.host, **headers}
        if self.cookies:
            fields["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {
            "type": kind,
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http" if kind == "http" else "ws",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
            "client": self.client,
            "server": ("rover-7", 8080),
            "state": dict(self.state),
            "extensions": {"websocket.http.response": {}} if kind == "websocket" else {},
            "subprotocols": [],
        }

    async def get(self, target: str, headers: Mapping[str, str] = HTML) -> Reply:
        return await self.send("GET", target, headers)

    async def post(self, target: str, form: Mapping[str, str], headers: Mapping[str, str] = HTML) -> Reply:
        return await self.send("POST", target, headers, urlencode(form).encode())

    async def send(self, method: str, target: str, headers: Mapping[str, str] = HTML, body: bytes = b"") -> Reply:
        scope = {**self._scope("http", target, headers), "method": method}
        reply = Reply(0, {}, b"")
        pending = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if pending:
                return pending.pop()
            await trio.sleep_forever()
            raise AssertionError

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                reply.status = message["status"]
                for name, value in message["headers"]:
                    reply.headers[name.decode()] = value.decode()
            else:
                reply.body += message.get("body", b"")

        await self.app(scope, receive, send)
        if cookie := reply.headers.get("set-cookie"):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return reply

    async def token(self) -> str:
        """Return the CSRF token of the forms."""
        match = re.search(r'name="csrf" value="([0-9a-f]+)"', (await self.get("/")).text)
        assert match is not None
        return match[1]

    @asynccontextmanager
    async def live(self, target: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[LivePage]:
        """Open a WebSocket. The server waits until each message is read, so not reading simulates a slow client.

        Leaving the block disconnects and discards messages until the application ends, or raises trio.TooSlowError.
        """
        scope = self._scope("websocket", target, headers or {})
        to_app, from_page = trio.open_memory_channel[dict[str, Any]](10)
        to_page, from_app = trio.open_memory_channel[Any](0)
        await to_app.send({"type": "websocket.connect"})

        async def answer() -> None:
            await self.app(scope, from_page.receive, to_page.send)
            to_page.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            page = LivePage(from_app)
            page.first = await from_app.receive()
            yield page
            await to_app.send({"type": "websocket.disconnect", "code": 1000})
            with trio.fail_after(LIMIT):
                async for _ in from_app:  # the application may still be sending, for example the rest of a refusal
                    pass


class LivePage:
    def __init__(self, channel: trio.MemoryReceiveChannel[Any]) -> None:
        self._channel = channel
        self.first: Any = None

    async def message(self) -> Any:
        """Return the next ASGI message of the application."""
        return await self._channel.receive()

    async def next(self) -> dict[str, Any]:
        """Return the next message of the server, decoded."""
        message: dict[str, Any] = json.loads((await self.message())["text"])
        return message

    async def patch(self) -> dict[str, str]:
        """Return the changed parts of the next patch."""
        while True:
            message = await self.next()
            if "patch" in message:
                parts: dict[str, str] = message["patch"]
                return parts
