"""Whether a user watches this machine in the cloud, so that live data is sent only then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio

from support import ChangeSignal

LONGEST: Final = 60.0  # maximum seconds for which one request of the cloud is valid; its pages renew it

Send = Callable[[Mapping[str, Any]], Awaitable[None]]
"""Sends one snapshot; returns when it has been handed to the connection."""


class Watch:
    """The time until which live data is requested."""

    def __init__(self) -> None:
        self._until = -1.0
        self._extended = ChangeSignal()

    def extend(self, seconds: float) -> None:
        """Extend the watch to `seconds` from now, at most LONGEST."""
        self._until = max(self._until, trio.current_time() + min(seconds, LONGEST))
        self._extended.announce()

    @property
    def is_active(self) -> bool:
        """Whether live data is requested now."""
        return trio.current_time() < self._until

    async def wait_active(self) -> None:
        """Wait until live data is requested."""
        while not self.is_active:
            await self._extended.next.wait()


Tell = Callable[[Watch, Send], Awaitable[None]]
"""Sends snapshots while live data is requested, until cancelled."""
