"""Data channel above the native end of an engine: order of waiting, back-pressure, bounded unread messages."""

from __future__ import annotations

import logging
from collections import deque
from typing import Final, Protocol

import trio

from rpc.peers.port import HIGH_WATER, MAX_MESSAGE, MAX_UNREAD

MESSAGE_COST: Final = 128
"""Bytes that an unread message counts in addition to its data: the objects that hold it."""

MAX_QUEUED: Final = 16 << 20
"""Bytes of a channel that are not yet sent, above which a message is refused: libwebrtc's limit, for all engines."""

_log = logging.getLogger("rpc.peers")


class Link(Protocol):
    """Native end of a channel. Its methods may raise any error of the engine."""

    @property
    def buffered(self) -> int:
        """Bytes queued and not yet sent."""
        ...

    def transmit(self, data: bytes | str) -> None:
        """Queue a message."""
        ...

    def shut(self) -> None:
        """Begin to close the channel."""
        ...


class MessageChannel:
    """Implementation of `port.Channel`. The engine calls `opened`, `arrived`, `drained` and `ended`, in any order."""

    def __init__(self, label: str, link: Link) -> None:
        self._label = label
        self._link = link
        self._open = False
        self._ended = False
        self._settled = trio.Event()  # open, or ended before
        self._turn = trio.Lock()  # senders wait in order
        self._room = trio.lowlevel.ParkingLot()
        self._arrival = trio.lowlevel.ParkingLot()
        self._unread: deque[bytes | str] = deque()
        self._unread_size = 0

    @property
    def label(self) -> str:
        """Name of the channel."""
        return self._label

    @property
    def buffered(self) -> int:
        """Bytes queued and not yet sent."""
        return 0 if self._ended else self._link.buffered

    async def wait_open(self) -> None:
        """Wait until the channel is open. Raises trio.BrokenResourceError if it closes before."""
        await self._settled.wait()
        if self._ended:
            raise trio.BrokenResourceError("the data channel has ended")

    async def send(self, data: bytes | str) -> None:
        """Queue one message, see `port.Channel`."""
        _check_size(data)
        async with self._turn:
            if not self._open:
                await self.wait_open()
            await self.wait_room()
            if not self._transmit(data):
                raise trio.BrokenResourceError("the data channel has ended")

    async def wait_room(self, limit: int = HIGH_WATER) -> None:
        """Wait while more than `limit` bytes are buffered, see `port.Channel`."""
        while not self._ended and self._link.buffered > limit:
            await self._room.park()

    def send_nowait(self, data: bytes | str) -> None:
        """Queue one message whatever is buffered, see `port.Channel`."""
        _check_size(data)
        self._transmit(data)

    async def receive(self) -> bytes | str:
        """Return the next message. Raises trio.EndOfChannel after the end of the channel."""
        await trio.lowlevel.checkpoint()
        while not self._unread:
            if self._ended:
                raise trio.EndOfChannel
            if self._arrival:
                raise trio.BusyResourceError("another task is receiving from this data channel")
            await self._arrival.park()
        data = self._unread.popleft()
        self._unread_size -= len(data) + MESSAGE_COST
        return data

    def close(self) -> None:
        """Close the channel, drop unread messages, and wake up calls that wait. Idempotent."""
        self._unread.clear()
        if not self._ended:
            self.ended()
            self._link.shut()

    def opened(self) -> None:
        """Note that the channel is open."""
        self._open = not self._ended
        self._settled.set()

    def arrived(self, data: bytes | str) -> None:
        """Add a message that has arrived. Closes the channel if too many are unread: engines cannot slow the sender."""
        if self._ended:
            return
        self._unread_size += len(data) + MESSAGE_COST
        if self._unread_size > MAX_UNREAD:
            _log.warning("data channel %r is closed: more than %d bytes are unread", self._label, MAX_UNREAD)
            self.close()
            return
        self._unread.append(data)
        self._arrival.unpark_all()

    def drained(self) -> None:
        """Note that fewer bytes are buffered."""
        if self._room and self._link.buffered <= HIGH_WATER:
            self._room.unpark_all()

    def ended(self) -> None:
        """Note the end of the channel. Messages that have arrived can still be received."""
        self._ended = True
        self._open = False
        self._settled.set()
        self._room.unpark_all()
        self._arrival.unpark_all()

    def _transmit(self, data: bytes | str) -> bool:
        """Queue a message if the channel is open, and return whether it was queued. A refusal ends the channel."""
        if not self._open:
            return False
        try:
            self._link.transmit(data)
        except (
            Exception
        ) as error:  # the queue is full, the channel is closing, or the other end takes only small messages
            _log.warning("data channel %r is closed: %s", self._label, error)
            self.close()
            return False
        return True


def _check_size(data: bytes | str) -> None:
    size = len(data) if isinstance(data, bytes) else len(data.encode())
    if size > MAX_MESSAGE:
        raise ValueError(f"a message of {size} bytes cannot be sent: at most {MAX_MESSAGE} are allowed")
