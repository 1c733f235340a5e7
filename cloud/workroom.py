"""Threads for work on what tenants send: parsing, comparing, checking, writing pages. The event loop stays free.

Work cannot be interrupted, so its input is bounded (cloud.limits). An organization has one thread at a time, also while
work runs on whose client has left: its result is dropped.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

import trio

from cloud.limits import WORK_QUEUE
from support.worker import Worker

T = TypeVar("T")

THREADS: Final = 2  # a third would take time from the event loop: Python runs one of them at a time
EACH: Final = 1  # of one organization


@dataclass(eq=False, slots=True)
class _Place:
    """Somebody who waits for a thread, or has one."""

    organization: str
    granted: trio.Event = field(default_factory=trio.Event)
    worker: Worker | None = None


class Workroom:
    """`async with room.opened()`, then `run` from any number of tasks."""

    def __init__(self) -> None:
        self._idle: list[Worker] = []
        self._busy: Counter[str] = Counter()  # threads by organization
        self._line: deque[_Place] = deque()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Leaving waits for work in progress, a few seconds at most."""
        async with AsyncExitStack() as stack:
            for number in range(THREADS):
                worker = Worker(f"work {number}")
                await stack.enter_async_context(worker.opened())
                self._idle.append(worker)
            yield

    async def run(self, organization: str, function: Callable[[], T]) -> T:
        """What `function` returns or raises, in a thread, in turn among organizations.

        Cancelled before it began, it never begins; later, its result is dropped. EXHAUSTED if too much work of the
        organization waits.
        """
        worker = await self._worker(organization)
        try:
            result = await worker.run(function)
        except trio.Cancelled:
            # The thread is free again when it comes to what is posted here.
            token = trio.lowlevel.current_trio_token()
            worker.post(lambda: token.run_sync_soon(self._leave, organization, worker))
            raise
        except BaseException:
            self._leave(organization, worker)
            raise
        self._leave(organization, worker)
        return result

    async def _worker(self, organization: str) -> Worker:
        await trio.lowlevel.checkpoint_if_cancelled()
        WORK_QUEUE.check_count(sum(one.organization == organization for one in self._line), "the organization")
        place = _Place(organization)
        self._line.append(place)
        self._grant()
        try:
            await place.granted.wait()
        except trio.Cancelled:
            if place.worker is None:
                self._line.remove(place)
            else:
                self._leave(organization, place.worker)
            raise
        assert place.worker is not None
        return place.worker

    def _leave(self, organization: str, worker: Worker) -> None:
        self._idle.append(worker)
        self._busy[organization] -= 1
        if not self._busy[organization]:
            del self._busy[organization]
        self._grant()

    def _grant(self) -> None:
        """Give idle threads to those who wait, in order, but to no organization more than its share."""
        for place in tuple(self._line):
            if not self._idle:
                return
            if self._busy[place.organization] < EACH:
                self._line.remove(place)
                self._busy[place.organization] += 1
                place.worker = self._idle.pop()
                place.granted.set()
