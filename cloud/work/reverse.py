"""Reverse connections: HTTP/2 connections that machines open to this replica, on which the cloud makes calls.

There is one for each caller and machine. It is opened when a caller needs it, and closes when it is idle. A caller thus
has its own streams, windows and limits on the machine, and the machine knows who calls on a connection.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from weakref import WeakSet

import trio

from cloud.values.author import Author
from rpc import Farewell
from rpc.http2 import ClientConnection
from schema import ErrorKind, MachineError

WAIT: Final = 10.0  # seconds for a machine to open a connection, including its login over a slow network
LINGER: Final = 1.0  # seconds; shorter than the window of sessions, see cloud.web.api.serve
REMEMBERED: Final = 10_000  # methods that were recorded in the audit log


@dataclass(frozen=True, slots=True)
class ReverseKey:
    """The caller and the machine of a reverse connection. The credential counts: a rotated key is another caller."""

    part: str
    type: str
    name: str
    credential: str

    @classmethod
    def of(cls, part: str, author: Author) -> ReverseKey:
        """Return the key of the connection for calls of `author` to `part`."""
        return cls(part, author.type, author.name, author.credential)


class Reverse:
    """A reverse connection, or the attempt to get one."""

    def __init__(self, key: ReverseKey) -> None:
        self.key = key
        self.name = ""  # of the machine
        self.id = ""  # of the request to the machine; secret, because it is what the machine shows
        self.author = Author(key.type, key.name, key.credential)
        self.connection: ClientConnection | None = None
        self.refusal: MachineError | None = None  # why the caller may no longer call
        self.lock = trio.Lock()
        self.opened = trio.Event()
        self.waiting = 0
        self.failures = 0
        self.failure: MachineError | None = None
        self._clients: WeakSet[Farewell] = WeakSet()  # weak: many connections end without a farewell
        self._client_came, self._all_left = trio.Event(), trio.Event()

    def used_by(self, client: Farewell) -> None:
        """Record that a client's connection to the cloud uses this connection, until the client closes it."""
        if client not in self._clients and not client.said:
            self._clients.add(client)
            client.on_said.append(self._leave)
            self._client_came.set()
            if self._all_left.is_set():
                self._all_left = trio.Event()

    def _leave(self) -> None:
        for client in [client for client in self._clients if client.said]:
            self._clients.discard(client)
        if not self._clients:
            self._client_came = trio.Event()
            self._all_left.set()

    async def until_all_left(self) -> None:
        """Return LINGER seconds after all clients have closed their connections; those that were lost never do."""
        while True:
            await self._all_left.wait()
            with trio.move_on_after(LINGER) as patience:
                await self._client_came.wait()
            if patience.cancelled_caught:
                return

    def is_usable(self) -> bool:
        """Whether new calls can start."""
        return self.connection is not None and self.connection.usable


class Reverses:
    """The reverse connections of this replica."""

    def __init__(self) -> None:
        self._reverses: dict[ReverseKey, Reverse] = {}
        self._awaited: dict[str, Reverse] = {}
        self._following: Counter[str] = Counter()
        self._recorded: dict[tuple[ReverseKey, str], float] = {}

    # ---- machines

    @contextmanager
    def following(self, part: str) -> Iterator[None]:
        """Record that a push channel of `part` is open here while the context is open."""
        self._following[part] += 1
        try:
            yield
        finally:
            self._following[part] -= 1
            if not self._following[part]:
                del self._following[part]

    def follows(self, part: str) -> bool:
        """Return whether a push channel of `part` is open here."""
        return part in self._following

    def make_room(self, part: str, limit: int) -> bool:
        """Return whether `part` has at most `limit` connections, with those that callers wait for.

        Otherwise close one without calls if there is one, so that callers who have left do not keep out others.
        """
        reverses = [reverse for key, reverse in self._reverses.items() if key.part == part]
        if len(reverses) <= limit:
            return True
        for reverse in reverses:
            connection = reverse.connection
            if connection is not None and connection.usable and not connection.streams and not reverse.waiting:
                connection.close()
                return True
        return False

    def awaited(self, part: str) -> list[Reverse]:
        """Return the connections to `part` that callers wait for, oldest first."""
        return [reverse for reverse in self._awaited.values() if reverse.key.part == part]

    def take(self, part: str, request: str) -> Reverse | None:
        """Return the awaited connection that a machine opens, once; None if no caller waits for it."""
        reverse = self._awaited.get(request)
        if reverse is None or reverse.key.part != part:
            return None
        del self._awaited[request]
        return reverse

    @contextmanager
    def open(self, reverse: Reverse, connection: ClientConnection) -> Iterator[None]:
        """Let callers use `connection` while the context is open."""
        reverse.connection = connection
        reverse.opened.set()
        try:
            yield
        finally:
            reverse.connection = None
            self._drop(reverse)

    # ---- callers

    async def get(self, key: ReverseKey, ask: Callable[[Reverse], Awaitable[None]]) -> Reverse:
        """Return a usable connection; if there is none, get one from the machine with `ask`.

        Concurrent callers share one attempt, and its failure. MachineError: that of `ask`, or UNAVAILABLE if the
        machine does not open the connection in time.
        """
        reverse = self._reverses.get(key)
        if reverse is None or reverse.refusal is not None:
            reverse = self._reverses[key] = Reverse(key)
        if reverse.is_usable():
            return reverse
        failures = reverse.failures
        reverse.waiting += 1
        try:
            async with reverse.lock:
                if not reverse.is_usable() and failures == reverse.failures:
                    await self._attempt(reverse, ask)
                if reverse.is_usable():
                    return reverse
        finally:
            reverse.waiting -= 1
            self._drop(reverse)
        failure = reverse.failure or _not_opened(reverse.name)
        raise MachineError(failure.message, kind=failure.kind, remedy=failure.remedy)

    async def _attempt(self, reverse: Reverse, ask: Callable[[Reverse], Awaitable[None]]) -> None:
        reverse.id, reverse.opened, reverse.failure = secrets.token_urlsafe(24), trio.Event(), None
        self._awaited[reverse.id] = reverse
        try:
            with trio.move_on_after(WAIT):
                await ask(reverse)
                await reverse.opened.wait()
        except MachineError as error:
            reverse.failure = error
        finally:
            self._awaited.pop(reverse.id, None)
        if not reverse.is_usable():
            reverse.failures += 1

    def _drop(self, reverse: Reverse) -> None:
        unused = not reverse.waiting and reverse.connection is None
        if unused and self._reverses.get(reverse.key) is reverse:
            del self._reverses[reverse.key]

    # ---- audit

    def is_recorded(self, key: ReverseKey, method: str, since: float) -> bool:
        """Return whether `record` was called for a method since this time."""
        return self._recorded.get((key, method), float("-inf")) >= since

    def record(self, key: ReverseKey, method: str, now: float) -> None:
        """Remember that a method of a machine was recorded as called; the oldest records are forgotten."""
        self._recorded.pop((key, method), None)
        while len(self._recorded) >= REMEMBERED:
            del self._recorded[next(iter(self._recorded))]
        self._recorded[key, method] = now


def _not_opened(name: str) -> MachineError:
    return MachineError(
        f"machine {name} did not open a connection for the call within {WAIT:g} s",
        kind=ErrorKind.UNAVAILABLE,
        remedy="try again; if it persists, see the log of its machine-server",
    )
