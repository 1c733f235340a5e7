"""Fair scheduling of connections: each turn starts requests of one connection, one turn per pass of the event loop.

Start-time fair queueing (Goyal, Vin and Cheng, 1996): the connection that has received the least service is next,
however many requests the other connections have waiting. Each pass has a cost of its own (a wait for events, a write to
a socket), so a connection with many short calls starts several in a turn while no other makes one call after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Final

import trio

MOST_CALLS: Final = 8
"""Calls that a connection may start in one turn. Eight cost a third less than one at a time; 16 cost the same."""

SHORT: Final = 0.002
"""Seconds that a turn may take. After a longer turn, a connection starts one call at a time again."""

INTERACTIVE: Final = 0.1
"""Seconds after the latest of `SINGLES` turns with a single call, for which a person may wait, in which all connections
start one call at a time: otherwise the p99 of such calls is up to six times as long as alone, see `bench/fairness.py`.
"""

SINGLES: Final = 3
"""Turns in a row with a single call that show a client which waits for each response before its next call.

A client that keeps several calls in flight also sends one alone now and then. Counted as such a client, it would slow
itself down for as long as it lasts: responses that leave one by one make requests that arrive one by one.
"""


class Flow:
    """Scheduling state of one connection in `Turns`."""

    __slots__ = ("calls", "finish", "singles")

    def __init__(self) -> None:
        self.finish = 0  # virtual time at which its last turn ends
        self.calls = 1  # that it may start in its next turn
        self.singles = 0  # latest turns in a row with a single call


class Turns:
    """Scheduler with one holder at a time; a turn ends after the tasks that it started ran once.

    Turns count equally, but those of several calls as many: use `calls` and `measured`.
    """

    __slots__ = ("_finish", "_interactive", "_now", "_order", "_taken", "_waiting")

    def __init__(self) -> None:
        self._finish = 0  # latest virtual time at which a turn ends, of all flows
        self._now = 0  # virtual start time of the latest turn
        self._taken = False
        self._order: Iterator[int] = count()
        self._waiting: list[tuple[int, bool, int, trio.lowlevel.Task]] = []  # heap ordered by start
        self._interactive = -inf  # start of the latest turn with a single call after others

    def calls(self, flow: Flow, now: float) -> int:
        """Return how many calls a connection may start in a turn that begins `now`, in seconds of any clock."""
        return flow.calls if now - self._interactive > INTERACTIVE else 1

    def measured(self, flow: Flow, began: float, seconds: float, *, calls: int, full: bool, single: bool) -> None:
        """Count the calls that a connection has started in a turn.

        `full` means that more are waiting, `single` that this call was the only one that had arrived.
        """
        flow.finish += max(0, calls - 1)  # `begin` has counted one
        self._finish = max(self._finish, flow.finish)
        flow.singles = flow.singles + 1 if single else 0
        if flow.singles >= SINGLES:
            self._interactive = began
        if seconds > SHORT:
            flow.calls = 1
        elif full and seconds < SHORT / 2:
            flow.calls = min(2 * flow.calls, MOST_CALLS)

    async def begin(self, flow: Flow) -> None:
        """Wait for a turn, which must be ended with `end`. Not a checkpoint if no turn is in progress."""
        if not self._taken:  # turns for which no other flow waited do not count
            self._now = max(self._now, self._finish + 1)
        start = max(self._now - 1, flow.finish)  # a flow without recent turns precedes all others
        flow.finish = start + 1
        self._finish = max(self._finish, flow.finish)
        if not self._taken:
            self._taken = True
            return
        # Among equals, the client that waits for each response comes before those that do not.
        entry = (start, flow.singles < SINGLES, next(self._order), trio.lowlevel.current_task())
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
                start, _, _, task = heappop(self._waiting)
                self._now = max(self._now, start)
                trio.lowlevel.reschedule(task)
            else:
                self._taken = False
