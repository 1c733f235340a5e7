"""The machine document from the cloud: first the cached one, then each one that the cloud sends."""

from __future__ import annotations

import json
import math
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
import trio

from rpc import within
from support import ChangeSignal, DoublingDelay, ungrouped
from uplink import cached
from uplink.dial import CloudAddress, CloudUnavailable, connected
from uplink.document import InvalidMessage, document_of
from uplink.files import FileReading
from uplink.watch import Tell, Watch

if TYPE_CHECKING:
    from trio_websocket import WebSocketConnection

    from support import Worker

FIRST_DELAY: Final = 0.5  # seconds before the second connection attempt; doubled each time, with jitter
MAX_DELAY: Final = 10.0  # seconds; the specification promises that a change arrives within 15
REPORT_EVERY: Final = 2.0  # seconds between two state reports
SAVE_AGAIN: Final = 30.0  # seconds until saving a configuration is retried after a disk error
GOODBYE_LIMIT: Final = 1.0  # seconds for telling the cloud that this machine stops
FIRST_ANSWER: Final = 5.0
"""Seconds without a cached configuration in which the cloud's first answer is awaited, unless it cannot be reached."""
SILENCE: Final = 30.0  # seconds without a pong after which the connection counts as lost

_NOT_CACHED: Final = "the configuration cannot be cached for a start without the cloud"

_log = structlog.get_logger("rdk.networking")

State = Callable[[], Mapping[str, Any]]
"""Returns the current state of the machine, to be reported to the cloud."""

Changes = Callable[[], Sequence[AsyncIterator[object]]]
"""Returns streams that yield an item whenever the state may have changed; they may lag but never lose the last item."""


Trust = Callable[[Any, "Worker"], Awaitable[None]]
"""Handles the authorities of a message; raises TypeError or ValueError if they are invalid."""


class CloudSource:
    """Follows the configuration of one machine part of the cloud at `address`.

    `initial` is the content of the credentials file. The newest configuration is cached in the folder `home`.
    """

    def __init__(self, address: CloudAddress, initial: bytes, home: Path, worker: Worker) -> None:
        self.address = address
        self.connected = False
        self.fetched = False  # the cloud has sent a valid configuration since the start
        self.trouble = "not connected yet"  # why it is not connected; empty while it is
        self._own: Mapping[str, Any] = json.loads(initial)
        self._cache = cached.path_of(home, address.part)
        self._worker = worker
        self._reading = FileReading(initial)
        self._received: bytes | None = None  # the last document from the cloud that differs from the cached one
        self._saving = trio.Lock()
        self._unsaved: bytes | None = None  # a document that could not be saved
        self._save_failed = ChangeSignal()
        self._changed = ChangeSignal()
        self._attempted = trio.Event()  # the first attempt to fetch a configuration has ended
        self._state: State | None = None
        self._changes: Changes = tuple
        self._send_live: Tell | None = None
        self._watch = Watch()
        self._restart: Callable[[], None] = lambda: None
        self._trust: Trust | None = None
        self._calls: Callable[[Mapping[str, Any]], None] | None = None

    def attach(self, *, state: State, changes: Changes, restart: Callable[[], None], tell: Tell) -> None:
        """Set the source of state reports, the handler of restart requests, and the sender of live data."""
        self._state, self._changes, self._restart, self._send_live = state, changes, restart, tell

    def trust(self, handler: Trust) -> None:
        """Set the handler of the authorities that the cloud sends."""
        self._trust = handler

    def answer_calls(self, handler: Callable[[Mapping[str, Any]], None]) -> None:
        """Set the handler of the cloud's requests for connections on which it calls this machine."""
        self._calls = handler

    @asynccontextmanager
    async def readings(self) -> AsyncIterator[AsyncIterator[FileReading]]:
        """Yield a reading now and each time the content differs.

        The first reading is the cached configuration if there is one. Otherwise it is the cloud's, and the credentials
        file after a failed attempt or FIRST_ANSWER seconds. So the machine does not first open a port that its
        configuration does not name.
        """
        async with self._worker.opened(), trio.open_nursery() as nursery:
            last = await self._worker.run(lambda: cached.load(self._cache))
            if last is not None:
                _log.info("using the cached configuration until the cloud answers", saved=last.saved.isoformat())
                self._take(bytes(last.document))
            nursery.start_soon(self._follow)
            nursery.start_soon(self._save_again)
            if last is None:
                with trio.move_on_after(FIRST_ANSWER):
                    await self._attempted.wait()
            yield self._iterate()
            nursery.cancel_scope.cancel()

    async def used(self, reading: FileReading) -> None:
        """Cache a configuration from the cloud after it has proved usable; see Source.used."""
        if reading.data is None or reading.data != self._received:
            return
        async with self._saving:
            await self._save(reading.data)

    async def _save(self, data: bytes) -> None:
        """Save, or let `_save_again` retry; each disk outage is logged once."""
        try:
            await cached.save(self._cache, data, self._worker.run)
        except ValueError as error:
            _log.error(_NOT_CACHED, error=str(error))
        except OSError as error:
            if self._unsaved is None:
                remedy = f"free disk space or allow this user to write there; retried every {SAVE_AGAIN:g} s"
                _log.error(_NOT_CACHED, error=str(error), remedy=remedy)
            self._unsaved = data
            self._save_failed.announce()
        else:
            if self._unsaved is not None:
                _log.info("the configuration is cached for a start without the cloud again")
            self._unsaved = None

    async def _save_again(self) -> None:
        failed = self._save_failed.next
        while True:
            await failed.wait()
            await trio.sleep(SAVE_AGAIN)
            async with self._saving:
                failed = self._save_failed.next
                if self._unsaved is not None:
                    await self._save(self._unsaved)

    def _iterate(self) -> AsyncIterator[FileReading]:
        return self._changed.values(lambda: self._reading)

    def _take(self, data: bytes) -> None:
        self._reading = FileReading(data, expand=False)
        self._changed.announce()

    # ---- the connection

    async def _follow(self) -> None:
        delay = DoublingDelay(FIRST_DELAY, MAX_DELAY)
        while True:
            begun = math.inf
            try:
                async with connected(self.address) as socket:
                    self._log_connected()
                    begun = trio.current_time()
                    with ungrouped(CloudUnavailable, OSError):
                        await self._speak(socket)
                    self._log_disconnected(closing_reason(socket))
            except (CloudUnavailable, OSError) as error:
                self._log_disconnected(str(error) or repr(error))
            if trio.current_time() - begun > MAX_DELAY:  # closing the connection at once counts as a failed attempt
                delay.reset()
            await trio.sleep(delay.next() * random.uniform(0.5, 1.0))

    def _log_connected(self) -> None:
        self.connected, self.trouble = True, ""
        self.address.contact.mark_reached()
        _log.info("connected to the cloud", address=self.address.url)

    def _log_disconnected(self, reason: str) -> None:
        """Log once for each outage, and when the reason changes."""
        if self.connected or reason != self.trouble:
            _log.warning("not connected to the cloud", address=self.address.url, reason=reason)
        self.connected, self.trouble = False, reason
        self._attempted.set()

    async def _speak(self, socket: WebSocketConnection) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._ping, socket, nursery.cancel_scope)
                if self._state is not None:
                    nursery.start_soon(self._report, socket, self._state)
                if self._send_live is not None:
                    self._watch = Watch()
                    nursery.start_soon(self._send_live_data, socket, self._send_live)
                async with aclosing(messages(socket)) as texts:
                    async for text in texts:
                        await self._handle(text)
                nursery.cancel_scope.cancel()
        finally:
            if trio.current_effective_deadline() == -math.inf:  # this machine stops
                with trio.move_on_after(GOODBYE_LIMIT, shield=True):
                    await send(socket, '{"goodbye": true}')

    async def _handle(self, text: str) -> None:
        try:
            message = json.loads(text)
            if message.get("restart"):
                self._restart()
                return
            if "watched" in message:
                self._watch.extend(float(message["watched"]))
                return
            if "serve" in message:
                if self._calls is not None:
                    self._calls(message["serve"])
                return
            data = document_of(message, self._own)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidMessage) as error:
            _log.error("the cloud sent an invalid message", problem=str(error))
            return
        self.fetched = True
        await self._handle_authorities(message.get("authorities"))
        if data != self._reading.data:
            self._received = data
            self._take(data)
        self._attempted.set()

    async def _handle_authorities(self, authorities: Any) -> None:
        if authorities is None or self._trust is None:
            return
        try:
            await self._trust(authorities, self._worker)
        except (ValueError, TypeError) as error:
            _log.error("the cloud sent invalid authorities", problem=str(error))

    async def _ping(self, socket: WebSocketConnection, scope: trio.CancelScope) -> None:
        """Close the connection when the cloud no longer answers pings."""
        while True:
            await trio.sleep(SILENCE / 2)
            try:
                await within(SILENCE / 2, partial(ping, socket))
            except trio.TooSlowError:
                scope.cancel()

    async def _report(self, socket: WebSocketConnection, state: State) -> None:
        changed = ChangeSignal()

        async def follow(stream: AsyncIterator[object]) -> None:
            async for _ in stream:
                changed.announce()

        async with trio.open_nursery() as nursery:
            for stream in self._changes():
                nursery.start_soon(follow, stream)
            last: Mapping[str, Any] = {}
            while True:
                change = changed.next
                current = state()
                if current != last:
                    last = current
                    await send(socket, json.dumps({"report": current}))
                await trio.sleep(REPORT_EVERY)
                await change.wait()

    async def _send_live_data(self, socket: WebSocketConnection, tell: Tell) -> None:
        async def send_snapshot(snapshot: Mapping[str, Any]) -> None:
            await send(socket, json.dumps({"live": snapshot}, separators=(",", ":")))

        await tell(self._watch, send_snapshot)


def closing_reason(socket: WebSocketConnection) -> str:
    """Return why a connection was closed: the reason from the cloud, if it sent one."""
    return (socket.closed is not None and socket.closed.reason) or "the cloud closed the connection"


async def messages(socket: WebSocketConnection) -> AsyncGenerator[str, None]:
    """Iterate over the received text messages until the connection is closed."""
    from trio_websocket import ConnectionClosed

    while True:
        try:
            message = await socket.get_message()
        except ConnectionClosed:
            return
        if isinstance(message, str):
            yield message


async def ping(socket: WebSocketConnection) -> None:
    """Send a ping and wait for the answer, or until the connection is closed."""
    from trio_websocket import ConnectionClosed

    try:
        await socket.ping()
    except ConnectionClosed:
        return


async def send(socket: WebSocketConnection, text: str) -> None:
    """Send a text message; ignore a closed connection, which the receiving task notices."""
    from trio_websocket import ConnectionClosed

    try:
        await socket.send_message(text)
    except ConnectionClosed:
        return
