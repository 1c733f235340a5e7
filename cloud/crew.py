"""Threads that organizations share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import trio

from cloud.limits import Limit
from cloud.slots import Slots
from support.worker import Worker

T = TypeVar("T")


class Crew:
    """Open workers, of which one organization has at most `each` at a time, also while a call runs whose caller was
    cancelled; `shared` of them while several organizations are active. Organizations that wait take turns; at most
    `queue` calls of one wait.
    """

    def __init__(
        self, workers: Sequence[Worker], each: int, queue: Limit | None = None, *, shared: int | None = None
    ) -> None:
        self._workers: Final = tuple(workers)
        self._slots: Final = Slots(len(workers), each, queue, shared=shared)

    async def run(self, organization: str, function: Callable[[int], T]) -> T:
        """Call `function` with the number of a worker in its thread; return or raise what it does.

        Cancelled before the call begins, it never begins; later, its result is dropped. EXHAUSTED if too much of the
        organization waits.
        """
        number = await self._slots.take(organization)
        worker = self._workers[number]
        give_back = partial(self._slots.give_back, organization, number)
        try:
            result = await worker.run(partial(function, number))
        except trio.Cancelled:
            # The thread is free again when it comes to what is posted here.
            worker.post(partial(_call_soon, trio.lowlevel.current_trio_token(), give_back))
            raise
        except BaseException:
            give_back()
            raise
        give_back()
        return result


def _call_soon(token: trio.lowlevel.TrioToken, function: Callable[[], object]) -> None:
    with suppress(trio.RunFinishedError):
        token.run_sync_soon(function)
