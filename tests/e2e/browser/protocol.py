"""The DevTools protocol over a WebSocket: commands with answers, and events."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import trio
from trio_websocket import ConnectionClosed, WebSocketConnection

from rpc.client.websocket import open_websocket

MAX_MESSAGE = 64 * 2**20  # bytes; a screenshot arrives as one message
LIMIT = 60.0  # seconds for any one step; generous, because the computer that runs the tests may be busy


class Refused(Exception):
    """The browser rejected a command."""


class Connection:
    """A connection to a browser; create it with `connected`."""

    def __init__(self, socket: WebSocketConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, trio.MemorySendChannel[dict[str, Any]]] = {}
        self._nursery: trio.Nursery | None = None
        self._listeners: list[tuple[str, Callable[[str, dict[str, Any]], None]]] = []

    async def call(self, method: str, session: str = "", /, **parameters: Any) -> dict[str, Any]:
        """Run a command and return its result; raises Refused with the browser's message if it fails."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        send, receive = trio.open_memory_channel[dict[str, Any]](1)
        self._answers[number] = send
        try:
            with trio.fail_after(LIMIT):
                await self._socket.send_message(json.dumps(message))
                answer = await receive.receive()
        except (ConnectionClosed, trio.EndOfChannel):
            raise Refused(f"{method}: the browser has gone") from None
        except trio.TooSlowError:
            raise AssertionError(f"{method}: no answer within {LIMIT} s") from None
        finally:
            self._answers.pop(number, None)
        if "error" in answer:
            raise Refused(f"{method}: {answer['error'].get('message', answer['error'])}")
        result: dict[str, Any] = answer.get("result", {})
        return result

    def listen(self, session: str, heard: Callable[[str, dict[str, Any]], None]) -> None:
        """Call `heard(method, parameters)` for every event of a session."""
        self._listeners.append((session, heard))

    def post(self, method: str, session: str, /, **parameters: Any) -> None:
        """Run a command later; for event handlers, which cannot wait."""
        assert self._nursery is not None
        self._nursery.start_soon(partial(self.call, method, session, **parameters))

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Process incoming messages until the browser closes the connection."""
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            try:
                while True:
                    self._take(json.loads(await self._socket.get_message()))
            except ConnectionClosed:
                for waiting in self._answers.values():
                    waiting.close()
            self._nursery.cancel_scope.cancel()

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            waiting = self._answers.get(message["id"])
            if waiting is not None:
                waiting.send_nowait(message)
            return
        for session, heard in self._listeners:
            if session == message.get("sessionId", ""):
                heard(message["method"], message.get("params", {}))


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    """Open a connection to the browser at `url`, ws://..."""
    parts = urlsplit(url)
    stream = await trio.open_tcp_stream(parts.hostname or "", parts.port or 0)
    async with trio.open_nursery() as nursery:
        try:
            with trio.fail_after(LIMIT):
                socket = await open_websocket(nursery, stream, parts.netloc, parts.path, max_message=MAX_MESSAGE)
            connection = Connection(socket)
            await nursery.start(connection.run)
            yield connection
        finally:
            await trio.aclose_forcefully(stream)  # the WebSocket leaves it open if it ended without a close frame
            nursery.cancel_scope.cancel()


class Events:
    """The events of one session, queued until they are waited for."""

    def __init__(self) -> None:
        send, self._receive = trio.open_memory_channel[tuple[str, dict[str, Any]]](math.inf)
        self._send = send

    def put(self, method: str, parameters: dict[str, Any]) -> None:
        """Add an event."""
        self._send.send_nowait((method, parameters))

    async def until(self, true: Callable[[str, dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for the next event that satisfies `true` and return its parameters; earlier events are dropped."""
        while True:
            method, parameters = await self._receive.receive()
            if true(method, parameters):
                return parameters
