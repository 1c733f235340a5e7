"""Hot-plug events of the simulated computer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from hal.ports.hotplug import HotplugEvent, HotplugEvents

BUFFER: Final = 256  # maximum events queued for a slow listener; after that it receives LOST
LOST: Final = HotplugEvent("lost", "", "")


class _Listener:
    """The events of one listener."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[HotplugEvent](BUFFER)
        self._overflowed = False

    def put(self, event: HotplugEvent) -> None:
        try:
            self._send.send_nowait(event)
        except trio.WouldBlock:
            self._overflowed = True

    def __aiter__(self) -> AsyncIterator[HotplugEvent]:
        return self

    async def __anext__(self) -> HotplugEvent:
        if self._overflowed:
            await trio.lowlevel.checkpoint()
            self._overflowed = False
            for _ in self._drain():
                pass
            return LOST
        return await self._receive.receive()

    def _drain(self) -> Iterator[HotplugEvent]:
        while True:
            try:
                yield self._receive.receive_nowait()
            except trio.WouldBlock:
                return


class Hotplug:
    """Distributes events to the listeners."""

    def __init__(self) -> None:
        self._listeners: list[_Listener] = []

    def added(self, subsystem: str, name: str, node: str = "", **properties: str) -> None:
        """Report that a device was added."""
        self._send("add", subsystem, name, node, properties)

    def removed(self, subsystem: str, name: str, node: str = "", **properties: str) -> None:
        """Report that a device was removed."""
        self._send("remove", subsystem, name, node, properties)

    def _send(self, action: str, subsystem: str, name: str, node: str, properties: dict[str, str]) -> None:
        event = HotplugEvent(action, subsystem, f"/devices/sim/{name}", node, properties)
        for listener in self._listeners:
            listener.put(event)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[HotplugEvents]:
        """Listen to events while the context is open."""
        await trio.lowlevel.checkpoint()
        listener = _Listener()
        self._listeners.append(listener)
        try:
            yield listener
        finally:
            self._listeners.remove(listener)
