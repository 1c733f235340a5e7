"""Many deadlines, one task."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Final

import trio


class Timer:
    """One call to be made at a time of the Trio clock. `cancel` it when it is no longer wanted."""

    __slots__ = ("_action", "_owner", "when")

    def __init__(self, owner: Timers, when: float, action: Callable[[], None]) -> None:
        self._owner = owner
        self._action: Callable[[], None] | None = action
        self.when: Final = when

    @property
    def cancelled(self) -> bool:
        """Whether the call has been made or cancelled."""
        return self._action is None

    def cancel(self) -> None:
        """Make no call; nothing happens if it was made."""
        self._action = None
        self._owner._tidy()

    def fire(self) -> None:
        """Make the call, once."""
        action, self._action = self._action, None
        if action is not None:
            action()


class Timers:
    """Calls to be made later, made by the one task that runs `run`.

    A task of its own for each would double the tasks of a graph; here an unused timer costs two heap operations. The
    task is told to wake earlier, never later: after a cancelled timer it may wake once for nothing, and then looks
    again.
    """

    def __init__(self) -> None:
        self.ended = trio.Event()  # `run` has returned
        self._heap: list[tuple[float, int, Timer]] = []
        self._made = 0
        self._closed = False
        self._scope: trio.CancelScope | None = None
        self._wakes_at = math.inf

    def at(self, when: float, action: Callable[[], None]) -> Timer:
        """Call `action` at `when`, or as soon as possible after. It must not raise."""
        timer = Timer(self, when, action)
        if when != math.inf:
            self._made += 1
            heapq.heappush(self._heap, (when, self._made, timer))
            if when < self._wakes_at:
                self._wake(when)
        return timer

    def close(self) -> None:
        """Make no further calls; `run` returns."""
        self._closed = True
        self._wake(-math.inf)

    async def run(self) -> None:
        """Make the calls, whatever is cancelled around it, until `close`."""
        while not self._closed:
            self._tidy()
            self._wakes_at = self._heap[0][0] if self._heap else math.inf
            with trio.CancelScope(deadline=self._wakes_at, shield=True) as self._scope:
                await trio.sleep_forever()
            now = trio.current_time()
            while self._heap and self._heap[0][0] <= now and not self._closed:
                heapq.heappop(self._heap)[2].fire()
        self.ended.set()

    def _tidy(self) -> None:
        """Forget cancelled timers at the front."""
        while self._heap and self._heap[0][2].cancelled:
            heapq.heappop(self._heap)

    def _wake(self, when: float) -> None:
        self._wakes_at = when
        if self._scope is not None:
            self._scope.deadline = when
