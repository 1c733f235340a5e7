"""A thread that decodes large messages or writes them as JSON, so that the event loop is not blocked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from rpc import Identity
from support import Worker

LARGE: Final = 64 * 1024  # bytes of a request; decoding this many takes some milliseconds

T = TypeVar("T")


class LargeMessages:
    """Runs functions one at a time in a thread, which exists only while there are any.

    Results of drivers are not encoded there, because a driver may change an object after returning it.
    """

    def __init__(self) -> None:
        self._worker = Worker("large messages")

    async def run(self, identity: Identity | None, function: Callable[[], T]) -> T:
        """Run `function` in the thread; see ServerCore.offload.

        Cancelling before the function has begun prevents it; cancelling later discards its result.
        """
        async with self._worker.opened():
            return await self._worker.run(function)

    async def read(self, stream: Any, path: str, what: Any, function: Callable[[], T]) -> T:
        """Decode a request, in the thread if it is large; see Target.offload."""
        if stream.size > LARGE and hasattr(what, "DESCRIPTOR"):
            return await self.run(stream.identity, function)
        return function()
