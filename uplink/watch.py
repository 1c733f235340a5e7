"""Whether somebody at the cloud watches this program, so that live data is sent only then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio

LONGEST: Final = 60.0  # seconds that one request of the cloud lasts; its pages renew it

Send = Callable[[Mapping[str, Any]], Awaitable[None]]
"""Sends one snapshot; returns when it has been handed to the connection."""


class Watch:
    """Until when somebody watches."""

    def __init__(self) -> None:
        self._until = -1.0
        self._begun = trio.Event()

    def look(self, seconds: float) -> None:
        """Extend the watch to `seconds` from now, at most LONGEST."""
        self._until = max(self._until, trio.current_time() + min(seconds, LONGEST))
        self._begun.set()

    @property
    def looking(self) -> bool:
        """Whether somebody watches now."""
        return trio.current_time() < self._until

    async def begun(self) -> None:
        """Wait until somebody watches."""
        while not self.looking:
            self._begun = trio.Event()
            await self._begun.wait()


Tell = Callable[[Watch, Send], Awaitable[None]]
"""Sends snapshots while somebody watches, until it is cancelled."""
