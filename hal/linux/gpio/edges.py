"""Edges of a requested line for any number of listeners, without a task or thread of its own.

The first of the waiting listeners waits for the descriptor and distributes the events to all listeners. If events are
not read in time, the kernel keeps the newest ones; gaps in its numbering show how many older ones were lost.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import trio

from hal.errors import HalError
from hal.linux.clock import trio_offset
from hal.linux.gpio.alternation import Alternation
from hal.ports.digital import Edge
from support.files import Inotify

EDGE_BUFFER: Final = 4096  # maximum edges queued for a slow listener
KERNEL_BUFFER: Final = 1024  # edges queued by the kernel; its maximum (linux/gpio.h: 16 for each of 64 lines)
DEV: Final = Path("/dev")

KernelEdge = Any
"""gpiod's EdgeEvent, of which `timestamp_ns` and `line_seqno` are used."""


class Listener:
    """The edges for one listener since it began to listen."""

    def __init__(self, source: EdgeSource) -> None:
        self._source = source
        self.since = time.monotonic_ns()
        self.queue: deque[Edge] = deque()
        self.dropped = 0

    def put(self, edge: Edge) -> None:
        """Queue an edge; drop the oldest one if the queue is full."""
        if len(self.queue) >= EDGE_BUFFER:
            self.queue.popleft()
            self.dropped += 1
        self.queue.append(edge)

    def __aiter__(self) -> Listener:
        return self

    async def __anext__(self) -> Edge:
        """Return the next edge. A checkpoint only if it has to wait, so that queued edges are handled together."""
        while not self.queue:
            await self._source.fill(self)
        return self.queue.popleft()


class EdgeSource:
    """The source of the edges of a requested line.

    `read` returns at least one event of a readable descriptor or raises OSError; `rising` returns whether an event is
    a rising edge; `level` reads the line, or raises OSError if the chip is gone. Kernels before 6.6 do not report that
    on the descriptor, so the folder of the chip's device node is watched, too.
    """

    def __init__(
        self,
        fd: int,
        read: Callable[[], Sequence[KernelEdge]],
        rising: Callable[[KernelEdge], bool],
        level: Callable[[], bool],
        what: str,
        folder: Path = DEV,
    ) -> None:
        self._fd = fd
        self._read = read
        self._rising = rising
        self._level = level
        self._what = what
        self._folder = folder
        self._listeners: list[Listener] = []
        self._turn = trio.Lock()
        self._seen = 0  # the kernel's number of the last event, which starts from 1 for each request
        self._offset = 0.0
        self._failure: OSError | None = None
        self._alternation = Alternation(False)
        self._inotify: Inotify | None = None
        self._both: select.epoll | None = None

    @property
    def listeners(self) -> int:
        """The number of listeners."""
        return len(self._listeners)

    @contextmanager
    def listener(self) -> Iterator[Listener]:
        """Add a listener while the context is open. HalError if the chip is gone."""
        listener = Listener(self)
        if not self._listeners:
            self._open()
        self._listeners.append(listener)
        try:
            yield listener
        finally:
            self._listeners.remove(listener)
            if not self._listeners:
                self.close()

    def _open(self) -> None:
        self._offset = trio_offset()
        try:
            self._alternation = Alternation(self._level())
        except OSError as error:
            raise HalError.of(error, self._what) from error
        self._inotify = Inotify()
        self._inotify.watch({self._folder})
        self._both = select.epoll()
        self._both.register(self._fd, select.EPOLLIN)
        self._both.register(self._inotify.fileno(), select.EPOLLIN)

    def close(self) -> None:
        """Stop waiting for edges; waiting tasks raise trio.ClosedResourceError. May be called more than once."""
        both, self._both = self._both, None
        if both is not None:
            trio.lowlevel.notify_closing(both.fileno())
            both.close()
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    async def fill(self, listener: Listener) -> None:
        """Wait until `listener` has an edge, or events for any listener were read."""
        async with self._turn:
            if listener.queue:
                return
            if self._failure is not None:
                raise HalError.of(self._failure, self._what) from self._failure
            if self._both is None or self._inotify is None:
                raise trio.ClosedResourceError(f"{self._what} is closed")
            await trio.lowlevel.wait_readable(self._both.fileno())
            ready = {fd for fd, _ in self._both.poll(0)}
            try:
                if self._fd in ready:
                    self._distribute(self._read())
                else:
                    self._inotify.drain()
                    self._level()
            except OSError as error:
                self._failure = error  # for the other listeners, too: the event is reported only once
                raise HalError.of(error, self._what) from error

    def _distribute(self, events: Sequence[KernelEdge]) -> None:
        for event in events:
            lost = max(0, event.line_seqno - self._seen - 1)
            self._seen = event.line_seqno
            edges = self._alternation.edges(self._rising(event), lost)
            for listener in self._listeners:
                listener.dropped += lost
                if event.timestamp_ns >= listener.since:
                    for high in edges:
                        listener.put(Edge(high, event.timestamp_ns / 1e9 + self._offset))
