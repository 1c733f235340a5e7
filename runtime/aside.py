"""A thread for large messages: the event loop stays free while they are read, or written as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from rpc.carrier import Identity
from support.worker import Worker

LARGE: Final = 64 * 1024  # bytes of a request; to read so many takes some milliseconds

T = TypeVar("T")


class Aside:
    """One piece of work after the other; the thread exists while there is some.

    Results of drivers are not written there: a driver may change what it has returned.
    """

    def __init__(self) -> None:
        self._worker = Worker("large messages")

    async def run(self, identity: Identity | None, function: Callable[[], T]) -> T:
        """As ServerCore.aside. Cancelled before it began, the work never begins; later, its result is dropped."""
        async with self._worker.opened():
            return await self._worker.run(function)

    async def read(self, stream: Any, path: str, what: Any, function: Callable[[], T]) -> T:
        """As Target.aside."""
        if stream.size > LARGE and hasattr(what, "DESCRIPTOR"):
            return await self.run(stream.identity, function)
        return function()
