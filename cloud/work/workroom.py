"""Threads for processing what tenants send: parsing, comparing, checking, rendering. The event loop stays free.

Work cannot be interrupted, so its input is limited (cloud.values.limits). An organization uses one thread at a time,
even if the client of running work has left, whose result is dropped. While several organizations are active, each has a
share of the time (cloud.work.shares).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, TypeVar

from cloud.values.limits import WORK_QUEUE
from cloud.work.crew import Crew
from support import Worker

T = TypeVar("T")

THREADS: Final = 2  # a third would slow down the event loop: Python runs one thread at a time
EACH: Final = 1  # threads for one organization


class Workroom:
    """Threads of a cloud: `async with room.opened()`, then `run` from any number of tasks."""

    def __init__(self) -> None:
        self._workers = [Worker(f"work {number}") for number in range(THREADS)]
        self._crew = Crew(self._workers, EACH, WORK_QUEUE, shared=EACH)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Accept work while the context is open. Leaving waits a few seconds at most for work in progress."""
        async with AsyncExitStack() as stack:
            for worker in self._workers:
                await stack.enter_async_context(worker.opened())
            await stack.enter_async_context(self._crew.opened())
            yield

    async def run(self, organization: str, function: Callable[[], T]) -> T:
        """Return or raise what `function` does, in a thread; organizations take turns.

        If cancelled before it begins, it never begins; if cancelled later, its result is dropped. EXHAUSTED if too much
        work of the organization is waiting.
        """
        return await self._crew.run(organization, lambda _: function())
