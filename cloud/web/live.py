"""The live side of a page: a WebSocket over which changed parts of it come.

    async def serve(socket: WebSocket) -> None:
        await live(cloud, socket, stream)

`stream(page)` is a task that looks at the facts, sends what has changed and waits for news; it ends with the page. Each
message is an object whose keys have handlers in the page's script; `patch` maps ids of elements to their new HTML.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import trio
from starlette.websockets import WebSocket, WebSocketDisconnect

from cloud.author import Author
from cloud.credentials import SIGNED_OUT, require_in_force
from cloud.openings import STREAMS
from cloud.services.base import Cloud
from cloud.standing import patiently
from cloud.web.closing import AGAIN, cut, farewell, first_of
from cloud.web.site import author_of
from schema.errors import MachineError

FRAME: Final = 0.1  # seconds between two patches of a page; more often nobody sees, and rendering costs


class LivePage:
    """The sending side of one page; its streams take turns."""

    def __init__(self, cloud: Cloud, socket: WebSocket) -> None:
        self.cloud = cloud
        self.socket = socket
        self.author: Author = author_of(socket)
        self._turn = trio.Lock()

    async def send(self, **message: Any) -> None:
        """Send one message, and wait until it is on its way: a slow page skips what lies between."""
        async with self._turn:
            await self.socket.send_text(json.dumps(message, ensure_ascii=False))


Stream = Callable[[LivePage], Awaitable[None]]


async def live(cloud: Cloud, socket: WebSocket, *streams: Stream) -> None:
    """Serve one page until it goes away, or a stream raises MachineError: what it shows is gone, or not the caller's.

    When the caller's key changes, the connection is closed; the page connects again, if the key still lets it.
    """
    page = LivePage(cloud, socket)
    await socket.accept()
    try:
        with cloud.openings.one(f"the key {page.author.name}", STREAMS):
            await _served(cloud, page, streams)
    except MachineError as error:
        await socket.close(*farewell(error))


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
                    pass  # pages have nothing to say
                scope.cancel()
        except* (WebSocketDisconnect, OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # it went away while something was sent
        except* _KeyChanged:
            code, reason = AGAIN, "the key has changed"
        except* MachineError as group:
            code, reason = farewell(first_of(group))
        if code:
            await socket.close(code, cut(reason))


class _KeyChanged(Exception):
    pass


async def _key_changed(cloud: Cloud, author: Author) -> None:
    with cloud.events.listening("key", author.name, also=["secret", SIGNED_OUT]) as news:
        await patiently(lambda: cloud.store.read(lambda sql: require_in_force(sql, author)))
        await news.next()
    raise _KeyChanged


class News:
    """What happened on several topics, each subject once, until somebody takes it."""

    def __init__(self) -> None:
        self._heard: dict[tuple[str, str], None] = {}
        self._event = trio.Event()

    def tell(self, topic: str, subject: str) -> None:
        """Something happened; EVERY as subject if it is not known to what."""
        self._heard[topic, subject] = None
        self._event.set()

    async def next(self, within: float | None = None) -> list[tuple[str, str]]:
        """Topics and subjects since the last call. Waits for one, but no longer than `within` seconds."""
        with trio.move_on_after(math.inf if within is None else max(0.0, within)):
            await self._event.wait()
        heard, self._heard = list(self._heard), {}
        self._event = trio.Event()
        return heard


@asynccontextmanager
async def news_of(cloud: Cloud, *topics: tuple[str, str]) -> AsyncIterator[News]:
    """Hear of topics with a subject (EVERY for all of them) from when the context is entered until it is left."""
    news = News()

    async def follow(topic: str, subject: str, *, task_status: trio.TaskStatus[None]) -> None:
        with cloud.events.listening(topic, subject) as listener:
            task_status.started()
            while True:
                for one in await listener.all():
                    news.tell(topic, one)

    async with trio.open_nursery() as nursery:
        for topic, subject in topics:
            await nursery.start(follow, topic, subject)
        yield news
        nursery.cancel_scope.cancel()
