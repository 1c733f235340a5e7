"""Tasks in which open streams check, after a change, whether their callers may still make them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio


class Checks:
    """The nursery of these tasks. Streams share it, because most have no change to check while they are open."""

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None
        self._closed = False

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Run checks while the context is open; leaving cancels them."""
        async with trio.open_nursery() as self._nursery:
            try:
                yield
            finally:
                self._closed = True
                self._nursery.cancel_scope.cancel()

    def start(self, check: Callable[[], Awaitable[None]]) -> None:
        """Start a task that runs `check`, which must not raise an exception.

        Has no effect after `opened` was left: the cloud stops, and the streams of its port are about to end. An event
        of the database must not fail because of that. RuntimeError before.
        """
        if self._nursery is None:
            raise RuntimeError("checks are not open")
        if not self._closed:
            self._nursery.start_soon(check)
