"""The machine document from the cloud: what is cached at once, and then what the cloud says, as soon as it says it."""

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

from rpc.silence import within
from uplink import cached
from uplink.dial import CloudAddress, Refused, connected
from uplink.document import NotAMessage, document_of
from uplink.files import Reading
from uplink.watch import Tell, Watch

if TYPE_CHECKING:
    from trio_websocket import WebSocketConnection

    from support.worker import Worker

FIRST_DELAY: Final = 0.5  # seconds before the second attempt to connect; doubled each time, with jitter
MAX_DELAY: Final = 10.0  # seconds: the specification promises a change within 15
REPORT_EVERY: Final = 2.0  # seconds between two reports of a state that changes
SAVE_AGAIN: Final = 30.0  # seconds until a configuration that the disk refused is saved again
SILENCE: Final = 30.0  # seconds without an answer to a ping, after which the connection counts as lost

_UNKEPT: Final = "the configuration cannot be kept for a start without the cloud"
_TRIED: Final = f"it is tried again every {SAVE_AGAIN:g} s"

_log = structlog.get_logger("rdk.networking")

State = Callable[[], Mapping[str, Any]]
"""What the machine says of itself now."""

Changes = Callable[[], Sequence[AsyncIterator[object]]]
"""Streams that have an item whenever the state may differ; they may lag, but never lose the last."""


Trust = Callable[[Any, "Worker"], Awaitable[None]]
"""What is done with the authorities of a message; TypeError or ValueError if they cannot be understood."""


class CloudSource:
    """Follows one part of the cloud at `address`.

    `credentials` is the `cloud` section as the credentials file has it. The newest configuration is kept in `home`.
    """

    def __init__(self, address: CloudAddress, initial: bytes, home: Path, worker: Worker) -> None:
        self.address = address
        self.connected = False
        self.trouble = "not connected yet"  # why it is not connected; empty while it is
        self._own: Mapping[str, Any] = json.loads(initial)
        self._cache = cached.path_of(home, address.part)
        self._worker = worker
        self._reading = Reading(initial)
        self._heard: bytes | None = None  # what the cloud said last, other than what was cached
        self._saving = trio.Lock()
        self._unsaved: bytes | None = None  # what the disk refused
        self._refused = trio.Event()
        self._changed = trio.Event()
        self._state: State | None = None
        self._changes: Changes = tuple
        self._tell: Tell | None = None
        self._watch = Watch()
        self._restart: Callable[[], None] = lambda: None
        self._trust: Trust | None = None

    def attach(self, *, state: State, changes: Changes, restart: Callable[[], None], tell: Tell) -> None:
        """Who knows what the machine is like, what to do when the cloud asks for a restart, and who tells more."""
        self._state, self._changes, self._restart, self._tell = state, changes, restart, tell

    def trust(self, told: Trust) -> None:
        """Who is to know what the cloud says of its authorities."""
        self._trust = told

    @asynccontextmanager
    async def readings(self) -> AsyncIterator[AsyncIterator[Reading]]:
        """As FileSource. What is cached comes first, or else the credentials file."""
        async with self._worker.opened(), trio.open_nursery() as nursery:
            kept = await self._worker.run(lambda: cached.load(self._cache))
            if kept is not None:
                _log.info("the last configuration is used until the cloud answers", saved=kept.saved.isoformat())
                self._take(bytes(kept.document))
            nursery.start_soon(self._follow)
            nursery.start_soon(self._save_again)
            yield self._iterate()
            nursery.cancel_scope.cancel()

    async def used(self, reading: Reading) -> None:
        """As Source: the last configuration of the cloud that can be used is cached, never one that cannot."""
        if reading.data is None or reading.data != self._heard:
            return
        async with self._saving:
            await self._save(reading.data)

    async def _save(self, data: bytes) -> None:
        """Save, or leave it to `_save_again`; what is reported is reported once for each outage of the disk."""
        try:
            await cached.save(self._cache, data, self._worker.run)
        except ValueError as error:
            _log.error(_UNKEPT, error=str(error))
        except OSError as error:
            if self._unsaved is None:
                _log.error(_UNKEPT, error=str(error), remedy=f"free space or let this user write there; {_TRIED}")
            self._unsaved = data
            self._refused.set()
        else:
            if self._unsaved is not None:
                _log.info("the configuration is kept for a start without the cloud again")
            self._unsaved = None

    async def _save_again(self) -> None:
        while True:
            await self._refused.wait()
            await trio.sleep(SAVE_AGAIN)
            async with self._saving:
                self._refused = trio.Event()
                if self._unsaved is not None:
                    await self._save(self._unsaved)

    async def _iterate(self) -> AsyncIterator[Reading]:
        while True:
            changed = self._changed
            yield self._reading
            await changed.wait()

    def _take(self, data: bytes) -> None:
        self._reading = Reading(data, expand=False)
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    # ---- the connection

    async def _follow(self) -> None:
        delay = FIRST_DELAY
        while True:
            begun = math.inf
            try:
                async with connected(self.address) as socket:
                    self._came()
                    begun = trio.current_time()
                    await self._speak(socket)
                    self._went(ended(socket))
            except (Refused, OSError) as error:
                self._went(str(error) or repr(error))
            if trio.current_time() - begun > MAX_DELAY:  # one that hangs up at once is no better than one that is away
                delay = FIRST_DELAY
            await trio.sleep(delay * random.uniform(0.5, 1.0))
            delay = min(2 * delay, MAX_DELAY)

    def _came(self) -> None:
        self.connected, self.trouble = True, ""
        self.address.contact.came()
        _log.info("connected to the cloud", address=self.address.url)

    def _went(self, reason: str) -> None:
        """Said once for each outage, and when the reason is another."""
        if self.connected or reason != self.trouble:
            _log.warning("not connected to the cloud", address=self.address.url, reason=reason)
        self.connected, self.trouble = False, reason

    async def _speak(self, socket: WebSocketConnection) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._ping, socket, nursery.cancel_scope)
            if self._state is not None:
                nursery.start_soon(self._report, socket, self._state)
            if self._tell is not None:
                self._watch = Watch()
                nursery.start_soon(self._show, socket, self._tell)
            async with aclosing(messages(socket)) as texts:
                async for text in texts:
                    await self._hear(text)
            nursery.cancel_scope.cancel()

    async def _hear(self, text: str) -> None:
        try:
            message = json.loads(text)
            if message.get("restart"):
                self._restart()
                return
            if "watched" in message:
                self._watch.look(float(message["watched"]))
                return
            data = document_of(message, self._own)
        except (ValueError, TypeError, AttributeError, RecursionError, NotAMessage) as error:
            _log.error("the cloud said something that cannot be understood", problem=str(error))
            return
        await self._learn(message.get("authorities"))
        if data != self._reading.data:
            self._heard = data
            self._take(data)

    async def _learn(self, authorities: Any) -> None:
        if authorities is None or self._trust is None:
            return
        try:
            await self._trust(authorities, self._worker)
        except (ValueError, TypeError) as error:
            _log.error("the cloud said something of authorities that cannot be understood", problem=str(error))

    async def _ping(self, socket: WebSocketConnection, scope: trio.CancelScope) -> None:
        """Notice a cloud that has gone without a word."""
        while True:
            await trio.sleep(SILENCE / 2)
            try:
                await within(SILENCE / 2, partial(answered, socket))
            except trio.TooSlowError:
                scope.cancel()

    async def _report(self, socket: WebSocketConnection, state: State) -> None:
        changed = trio.Event()

        async def follow(stream: AsyncIterator[object]) -> None:
            async for _ in stream:
                changed.set()

        async with trio.open_nursery() as nursery:
            for stream in self._changes():
                nursery.start_soon(follow, stream)
            last: Mapping[str, Any] = {}
            while True:
                found = state()
                if found != last:
                    last = found
                    await sent(socket, json.dumps({"report": found}))
                await trio.sleep(REPORT_EVERY)
                await changed.wait()
                changed = trio.Event()

    async def _show(self, socket: WebSocketConnection, tell: Tell) -> None:
        async def send(snapshot: Mapping[str, Any]) -> None:
            await sent(socket, json.dumps({"live": snapshot}, separators=(",", ":")))

        await tell(self._watch, send)


def ended(socket: WebSocketConnection) -> str:
    """Why a connection is closed, in the cloud's words if it said some."""
    return (socket.closed is not None and socket.closed.reason) or "the cloud ended the connection"


async def messages(socket: WebSocketConnection) -> AsyncGenerator[str, None]:
    """What comes, until the connection is closed."""
    from trio_websocket import ConnectionClosed

    while True:
        try:
            message = await socket.get_message()
        except ConnectionClosed:
            return
        if isinstance(message, str):
            yield message


async def answered(socket: WebSocketConnection) -> None:
    """Return when the other side has answered a ping, or the connection is closed."""
    from trio_websocket import ConnectionClosed

    try:
        await socket.ping()
    except ConnectionClosed:
        return


async def sent(socket: WebSocketConnection, text: str) -> None:
    """Send, unless the connection is closed: whoever receives notices that."""
    from trio_websocket import ConnectionClosed

    try:
        await socket.send_message(text)
    except ConnectionClosed:
        return
