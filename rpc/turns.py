"""Fair scheduling of connections: each turn starts requests of one connection, one turn per pass of the event loop.

Start-time fair queueing (Goyal, Vin and Cheng, 1996): the connection that has received the least service is next,
however many requests the other connections have waiting.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count

import trio


class Flow:
    """Scheduling state of one connection in `Turns`."""

    __slots__ = ("finish",)

    def __init__(self) -> None:
        self.finish = 0  # virtual time at which its last turn ends


class Turns:
    """Scheduler with one holder at a time. All turns count equally; a turn ends after the tasks it started ran once."""

    __slots__ = ("_now", "_order", "_taken", "_waiting")

    def __init__(self) -> None:
        self._now = 0  # virtual start time of the latest turn
        self._taken = False
        self._order: Iterator[int] = count()
        self._waiting: list[tuple[int, int, trio.lowlevel.Task]] = []  # heap ordered by start

    async def begin(self, flow: Flow) -> None:
        """Wait for a turn, which must be ended with `end`. Not a checkpoint if no turn is in progress."""
        start = max(self._now - 1, flow.finish)  # a flow without recent turns precedes all others
        flow.finish = start + 1
        if not self._taken:
            self._taken, self._now = True, max(self._now, start)
            return
        entry = (start, next(self._order), trio.lowlevel.current_task())
        heappush(self._waiting, entry)

        def abort(raise_cancel: object) -> trio.lowlevel.Abort:
            self._waiting.remove(entry)
            heapify(self._waiting)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    async def end(self) -> None:
        """Run the started tasks once, then pass the turn to the waiting flow with the earliest start."""
        try:
            await trio.lowlevel.checkpoint()
        finally:
            if self._waiting:
                start, _, task = heappop(self._waiting)
                self._now = max(self._now, start)
                trio.lowlevel.reschedule(task)
            else:
                self._taken = False
