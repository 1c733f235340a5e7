"""Notification that the cloud is reachable again, so that tasks that wait for a retry need not wait longer."""

from __future__ import annotations

import trio

from support import ChangeSignal


class Contact:
    """Set by the push channel; awaited by other code that talks to the cloud."""

    def __init__(self) -> None:
        self._reached = ChangeSignal()

    def mark_reached(self) -> None:
        """Record that the cloud was reached, for the first time or again."""
        self._reached.announce()

    async def wait_reached(self) -> None:
        """Wait until the cloud is reached the next time."""
        await self._reached.next.wait()

    async def pause(self, seconds: float) -> bool:
        """Wait for `seconds` or until the cloud is reached; return whether it was reached."""
        with trio.move_on_after(seconds):
            await self._reached.next.wait()
            return True
        return False
