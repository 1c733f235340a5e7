"""Pair of data channels in memory, with the limits, back-pressure and end of those of an engine."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import TypeAlias

import trio

from rpc.peers.channel import MAX_QUEUED, MessageChannel

Pair: TypeAlias = tuple[MessageChannel, MessageChannel]


@asynccontextmanager
async def memory_channels(label: str = "data", *, rate: float = inf) -> AsyncIterator[Pair]:
    """Yield the two open ends of a channel that carries `rate` bytes per second each way; at the end, both end."""
    links = _Link(rate), _Link(rate)
    ends = MessageChannel(label, links[0]), MessageChannel(label, links[1])
    async with trio.open_nursery() as nursery:
        for link, near, far in zip(links, ends, reversed(ends), strict=True):
            nursery.start_soon(link.carry, near, far)
        for end in ends:
            end.opened()
        try:
            yield ends
        finally:
            for end in ends:
                end.ended()
            nursery.cancel_scope.cancel()


class _Link:
    """One direction: the native end of the channel that sends, and the network up to the other channel."""

    def __init__(self, rate: float) -> None:
        self.buffered = 0
        self._rate = rate
        self._queue: deque[bytes | str] = deque()
        self._is_shut = False
        self._change = trio.lowlevel.ParkingLot()

    def transmit(self, data: bytes | str) -> None:
        """Queue a message."""
        if self.buffered > MAX_QUEUED:
            raise BufferError("the send queue is full")
        self._queue.append(data)
        self.buffered += _size(data)
        self._change.unpark_all()

    def shut(self) -> None:
        """Close after the messages that are queued."""
        self._is_shut = True
        self._change.unpark_all()

    async def carry(self, near: MessageChannel, far: MessageChannel) -> None:
        """Carry messages, one in each pass of the scheduler, and then the end, from the sender to the receiver."""
        while True:
            while not self._queue and not self._is_shut:
                await self._change.park()
            if not self._queue:
                near.ended()
                far.ended()
                return
            data = self._queue.popleft()
            await trio.sleep(_size(data) / self._rate)
            self.buffered -= _size(data)
            far.arrived(data)
            near.drained()


def _size(data: bytes | str) -> int:
    return len(data) if isinstance(data, bytes) else len(data.encode())
