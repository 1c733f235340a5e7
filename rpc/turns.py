"""Whose requests are begun next: connections take turns, one a pass of the event loop.

Start-time fair queueing (Goyal, Vin and Cheng, 1996): a connection with few requests is served next, however many
requests the others have waiting, because what counts is how much each has had.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count

import trio


class Flow:
    """What `Turns` remembers of one connection."""

    __slots__ = ("finish",)

    def __init__(self) -> None:
        self.finish = 0  # virtual time at which it has had its due


class Turns:
    """One holder at a time; each turn is of the same size and ends after the tasks that it started have run once."""

    __slots__ = ("_now", "_order", "_taken", "_waiting")

    def __init__(self) -> None:
        self._now = 0  # virtual time: start of the turn that was begun last
        self._taken = False
        self._order: Iterator[int] = count()
        self._waiting: list[tuple[int, int, trio.lowlevel.Task]] = []  # a heap, by start

    async def begin(self, flow: Flow) -> None:
        """Wait for a turn; then `end` must follow. Not a checkpoint if nobody else has one."""
        start = max(self._now - 1, flow.finish)  # who has had nothing lately comes before all who have
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
        """Let what was begun run, and give the turn to whoever has had least."""
        try:
            await trio.lowlevel.checkpoint()
        finally:
            if self._waiting:
                start, _, task = heappop(self._waiting)
                self._now = max(self._now, start)
                trio.lowlevel.reschedule(task)
            else:
                self._taken = False
