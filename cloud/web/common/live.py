"""Live updates of a page: a WebSocket that sends its changed parts.

    async def serve(socket: WebSocket) -> None:
        await live(cloud, socket, stream)

`stream(page)` is a task that reads data, sends what has changed and waits for news; it ends with the page. Each message
is an object whose keys have handlers in the page's script; `patch` maps ids of elements to their new HTML.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import trio
from starlette.websockets import WebSocket

from cloud.domain.permissions.credentials import SIGNED_OUT
from cloud.services.common.base import Cloud
from cloud.services.common.standing import check_in_force
from cloud.values.author import Author
from cloud.web.common.closing import RECONNECT, close_frame_of, first_leaf
from cloud.web.common.site import author_of
from cloud.work.openings import STREAMS
from rpc.pages import DISCONNECTED, close_reason
from schema import MachineError

FRAME: Final = 0.1  # minimum seconds between two patches of a page: faster changes are not visible, but cost rendering


class LivePage:
    """The sending side of a live page, shared by its streams."""

    def __init__(self, cloud: Cloud, socket: WebSocket) -> None:
        self.cloud = cloud
        self.socket = socket
        self.author: Author = author_of(socket)
        self._sending = trio.Lock()

    async def send(self, **message: Any) -> None:
        """Send a message and wait until it is written, so that slow clients skip intermediate states."""
        async with self._sending:
            await self.socket.send_text(json.dumps(message, ensure_ascii=False))


Stream = Callable[[LivePage], Awaitable[None]]


async def live(cloud: Cloud, socket: WebSocket, *streams: Stream) -> None:
    """Serve a page until it disconnects or a stream raises MachineError: its subject is gone or not accessible.

    When the caller's key changes, the connection is closed; the page then reconnects if the key still permits it.
    """
    page = LivePage(cloud, socket)
    await socket.accept()
    try:
        with cloud.openings.hold(f"the key {page.author.name}", STREAMS):
            await _served(cloud, page, streams)
    except MachineError as error:
        await socket.close(*close_frame_of(error))


async def _served(cloud: Cloud, page: LivePage, streams: Sequence[Stream]) -> None:
    socket = page.socket
    with trio.CancelScope() as scope:
        code, reason = 0, ""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_key_changed, cloud, page.author)
                for stream in streams:
                    nursery.start_soon(stream, page)
                while (await socket.receive())["type"] != "websocket.disconnect":
                    pass  # clients send no messages
                scope.cancel()
        except* DISCONNECTED:
            pass  # disconnected during a send
        except* _KeyChanged:
            code, reason = RECONNECT, "the key has changed"
        except* MachineError as group:
            code, reason = close_frame_of(first_leaf(group))
        if code:
            await socket.close(code, close_reason(reason))


class _KeyChanged(Exception):
    pass


async def _key_changed(cloud: Cloud, author: Author) -> None:
    with cloud.events.listening("key", author.name, also=["secret", SIGNED_OUT]) as news:
        await check_in_force(cloud, author)
        await news.next()
    raise _KeyChanged


class News:
    """Collected events of several topics, each subject once, until they are fetched."""

    def __init__(self) -> None:
        self._heard: dict[tuple[str, str], None] = {}
        self._event = trio.Event()

    def add(self, topic: str, subject: str) -> None:
        """Add an event; `subject` is EVERY if it may concern any."""
        self._heard[topic, subject] = None
        self._event.set()

    async def next(self, within: float | None = None) -> list[tuple[str, str]]:
        """Return topics and subjects since the last call; wait for the first one, but at most `within` seconds."""
        with trio.move_on_after(math.inf if within is None else max(0.0, within)):
            await self._event.wait()
        heard, self._heard = list(self._heard), {}
        self._event = trio.Event()
        return heard


@asynccontextmanager
async def news_of(cloud: Cloud, *topics: tuple[str, str]) -> AsyncIterator[News]:
    """Collect events of topics, each with a subject (EVERY for all), while the context is open."""
    news = News()

    async def follow(topic: str, subject: str, *, task_status: trio.TaskStatus[None]) -> None:
        with cloud.events.listening(topic, subject) as listener:
            task_status.started()
            while True:
                for changed in await listener.all():
                    news.add(topic, changed)

    async with trio.open_nursery() as nursery:
        for topic, subject in topics:
            await nursery.start(follow, topic, subject)
        yield news
        nursery.cancel_scope.cancel()
