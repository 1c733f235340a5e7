"""Whether the cloud is there, as the push channel finds out: whoever waits to try again need not wait longer."""

from __future__ import annotations

import trio


class Contact:
    """Told by the push channel; read by whatever else talks to the cloud."""

    def __init__(self) -> None:
        self._came = trio.Event()

    def came(self) -> None:
        """The cloud is reached, for the first time or again."""
        came, self._came = self._came, trio.Event()
        came.set()

    async def back(self) -> None:
        """Wait until the cloud is reached the next time."""
        await self._came.wait()

    async def pause(self, seconds: float) -> bool:
        """Wait so long, but no longer than until the cloud is reached; whether it was."""
        with trio.move_on_after(seconds):
            await self._came.wait()
            return True
        return False
