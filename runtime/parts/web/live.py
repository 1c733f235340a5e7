"""Live updates by WebSocket, one for each open page: changed parts of the page, readings, new log lines.

Each stream sends the newest state, waits until it is sent, and then gets the state again. A slow client skips
intermediate states; nothing is queued for it.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

import trio
from starlette.websockets import WebSocket

from engine.views import MachineStatus, PageSource, Shared
from rpc.pages import DISCONNECTED, Patcher, Piece, close_reason
from runtime.parts.web import pieces
from runtime.parts.web.forgery import check_origin
from runtime.parts.web.logview import SHOWN, Filter, newest
from runtime.parts.web.render import Renderer
from schema import MachineError
from support import ungrouped

FRAME: Final = 0.1  # seconds between two patches of a page; faster ones would be invisible but cost rendering
REFUSED: Final = 4403  # close code for pages without permission; private use, like HTTP's 403


class Live:
    """The endpoint `/live?view=overview`, `view=resource&name=...` or `view=logs&level=...`."""

    def __init__(self, source: PageSource, renderer: Renderer) -> None:
        self._source = source
        self._renderer = renderer
        self._shared = Shared(source.call)

    async def serve(self, socket: WebSocket) -> None:
        """Serve one page until it disconnects."""
        try:
            check_origin(socket)
        except MachineError as error:
            await socket.close(REFUSED, close_reason(error.message))
            return
        await socket.accept()
        query = dict(socket.query_params)
        view, name = query.get("view", "overview"), query.get("name", "")
        client = _Client(socket)
        streams: list[Callable[[], Awaitable[None]]] = []
        if view == "overview":
            streams.append(lambda: self._patches(client, pieces.overview))
        elif view == "resource":
            streams.append(lambda: self._patches(client, lambda status: pieces.resource(status, name)))
            if any(method.name == "get_readings" for method in self._source.methods(name)):
                streams.append(lambda: self._readings(client, name))
        elif view == "logs":
            client.filter = Filter.of(query)
            client.seen = int(query["since"]) if query.get("since", "").isdigit() else 0
            streams.append(lambda: self._logs(client))
        async with trio.open_nursery() as nursery:
            for stream in streams:
                nursery.start_soon(client.guarded, stream)
            await client.listen()
            nursery.cancel_scope.cancel()

    async def _patches(self, client: _Client, view: Callable[[MachineStatus], list[Piece]]) -> None:
        patcher = Patcher(lambda piece: self._renderer.part(piece.macro, *piece.arguments))
        changed = _Flag()
        async with trio.open_nursery() as nursery:
            for stream in self._source.changes():
                nursery.start_soon(changed.follow, stream)
            while True:
                html = patcher.patch(view(self._source.status()))
                if html:
                    await client.send({"patch": html})
                await trio.sleep(FRAME)
                await changed.wait()

    async def _readings(self, client: _Client, name: str) -> None:
        after = -math.inf
        with self._shared.watch(name) as watched:
            while True:
                reading = await watched.next(after)
                after = reading.at
                await client.send({"readings": {"values": reading.values, "error": reading.error}})

    async def _logs(self, client: _Client) -> None:
        async with aclosing(self._source.log_changes(client.seen)) as changes:
            async for _ in changes:
                entries = self._source.logs(client.seen)
                client.seen = entries[-1].seq if entries else client.seen
                lines = newest(entries, client.filter, SHOWN)
                if lines:
                    await client.send({"log": [self._renderer.part("log_line", entry) for entry in lines]})
                    await trio.sleep(FRAME)


class _Client:
    """The connection to one page, shared by its streams."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._turn = trio.Lock()
        self.filter = Filter()
        self.seen = 0

    async def send(self, message: dict[str, Any]) -> None:
        async with self._turn:
            await self._socket.send_text(json.dumps(message, ensure_ascii=False))

    async def guarded(self, stream: Callable[[], Awaitable[None]]) -> None:
        """Run a stream, and ignore a disconnect while sending: `listen` ends in that case."""
        try:
            with ungrouped(*DISCONNECTED):
                await stream()
        except DISCONNECTED:
            pass

    async def listen(self) -> None:
        """Return when the page has disconnected. Its messages are ignored."""
        while (await self._socket.receive())["type"] != "websocket.disconnect":
            pass


class _Flag:
    """A flag that several streams set. `wait` waits for it and clears it."""

    def __init__(self) -> None:
        self._event = trio.Event()

    async def follow(self, stream: AsyncIterator[object]) -> None:
        async for _ in stream:
            self._event.set()

    async def wait(self) -> None:
        await self._event.wait()
        self._event = trio.Event()
