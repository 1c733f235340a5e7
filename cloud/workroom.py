"""Threads for work on what tenants send: parsing, comparing, checking, writing pages. The event loop stays free.

Work cannot be interrupted, so its input is bounded (cloud.limits). An organization has one thread at a time, also while
work runs on whose client has left: its result is dropped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, TypeVar

from cloud.crew import Crew
from cloud.limits import WORK_QUEUE
from support.worker import Worker

T = TypeVar("T")

THREADS: Final = 2  # a third would take time from the event loop: Python runs one of them at a time
EACH: Final = 1  # of one organization


class Workroom:
    """`async with room.opened()`, then `run` from any number of tasks."""

    def __init__(self) -> None:
        self._workers = [Worker(f"work {number}") for number in range(THREADS)]
        self._crew = Crew(self._workers, EACH, WORK_QUEUE)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Leaving waits for work in progress, a few seconds at most."""
        async with AsyncExitStack() as stack:
            for worker in self._workers:
                await stack.enter_async_context(worker.opened())
            yield

    async def run(self, organization: str, function: Callable[[], T]) -> T:
        """What `function` returns or raises, in a thread, in turn among organizations.

        Cancelled before it began, it never begins; later, its result is dropped. EXHAUSTED if too much work of the
        organization waits.
        """
        return await self._crew.run(organization, lambda _: function())
