"""The control socket of hostapd and wpa_supplicant: requests, and events as they arrive.

Each datagram is one text. It is an event if it begins with "<"; otherwise it is the answer to the latest request.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Self

import trio

LONGEST = 1 << 16  # bytes of a datagram
_numbers = itertools.count()


class Control:
    """`async with Control(path) as control:` attaches to a daemon whose socket exists."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mine = Path(f"/run/control-{os.getpid()}-{next(_numbers)}")
        self._socket = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_DGRAM)
        self._events: list[str] = []

    async def __aenter__(self) -> Self:
        await self._socket.bind(str(self._mine))
        await self._socket.connect(str(self._path))
        await self.do("ATTACH")
        return self

    async def __aexit__(self, *details: object) -> None:
        self._socket.close()
        self._mine.unlink(missing_ok=True)

    async def ask(self, request: str) -> str:
        """Return the answer to a request. Events that arrive before it are kept for `event`."""
        await self._socket.send(request.encode())
        while True:
            text = await self._receive()
            if not text.startswith("<"):
                return text.strip()
            self._events.append(text)

    async def do(self, request: str) -> None:
        """Send a request; OSError unless it succeeds."""
        answer = await self.ask(request)
        if answer != "OK":
            raise OSError(f"{self._path.name} answers {answer!r} to {request.split()[0]}")

    async def event(self, *names: str) -> str:
        """Return the next event that begins with one of these names; earlier events are dropped."""
        while True:
            text = self._events.pop(0) if self._events else await self._receive()
            said = text.partition(">")[2]
            if said.startswith(names):
                return said

    async def _receive(self) -> str:
        return (await self._socket.recv(LONGEST)).decode(errors="replace")
