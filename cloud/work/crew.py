"""Threads that organizations share."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final, TypeVar

import trio

from cloud.values.limits import Limit
from cloud.work.shares import Shares
from cloud.work.slots import Slots
from support import Worker

T = TypeVar("T")


class Crew:
    """Shares open workers among organizations.

    An organization has at most `each` of them at a time, including those that still run calls of cancelled callers.
    Waiting organizations take turns; at most `queue` calls of one organization wait.

    With `shared`, an organization has at most that many workers while several organizations are active, and pauses
    after long calls, so that it takes at most its share of a processor (`cloud.work.shares`). This is useful because
    Python runs one thread at a time, so that every thread that computes delays all others. The organization "" is the
    cloud itself, which does not pause.

    Calls need `async with crew.opened()`.
    """

    def __init__(
        self, workers: Sequence[Worker], each: int, queue: Limit | None = None, *, shared: int | None = None
    ) -> None:
        self._workers: Final = tuple(workers)
        self._slots: Final = Slots(len(workers), each, queue, shared=shared)
        self._shares: Final = Shares()
        self._nursery: trio.Nursery | None = None  # runs the pauses of organizations

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Accept calls while the context is open. Leaving ends all pauses; it does not wait for calls."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                yield
            finally:
                self._nursery = None
                nursery.cancel_scope.cancel()

    async def run(self, organization: str, function: Callable[[int], T]) -> T:
        """Call `function` with the number of a worker in its thread; return or raise what it does.

        If cancelled before the call begins, it never begins; if cancelled later, its result is dropped. EXHAUSTED if
        too many calls of the organization are waiting.
        """
        number = await self._slots.take(organization)
        worker = self._workers[number]
        seconds = 0.0

        def timed() -> T:
            nonlocal seconds
            begin = time.thread_time()
            try:
                return function(number)
            finally:
                seconds = time.thread_time() - begin

        def end() -> None:
            self._end(organization, number, seconds)

        try:
            result = await worker.run(timed)
        except trio.Cancelled:
            # The thread becomes free when it reaches the function that is posted here.
            worker.post(partial(_call_soon, trio.lowlevel.current_trio_token(), end))
            raise
        except BaseException:
            end()
            raise
        end()
        return result

    def _end(self, organization: str, number: int, seconds: float) -> None:
        rest = self._shares.note(organization, seconds, trio.current_time()) if organization else 0.0
        if rest and self._nursery is not None and self._slots.shares(organization):
            self._slots.give_back(organization, number, resting=True)
            self._nursery.start_soon(self._rest, organization, rest)
        else:
            self._slots.give_back(organization, number)

    async def _rest(self, organization: str, seconds: float) -> None:
        try:
            await trio.sleep(seconds)
        finally:
            self._slots.end_rest(organization)


def _call_soon(token: trio.lowlevel.TrioToken, function: Callable[[], object]) -> None:
    with suppress(trio.RunFinishedError):
        token.run_sync_soon(function)
