"""Many timers in one task."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Final

import trio


class Timer:
    """A call that is made at a time of the Trio clock, unless it is cancelled."""

    __slots__ = ("_action", "_owner", "when")

    def __init__(self, owner: Timers, when: float, action: Callable[[], None]) -> None:
        self._owner = owner
        self._action: Callable[[], None] | None = action
        self.when: Final = when

    @property
    def cancelled(self) -> bool:
        """Whether the call was made or cancelled."""
        return self._action is None

    def cancel(self) -> None:
        """Cancel the call. Without effect if it was made already."""
        self._action = None
        self._owner._drop_cancelled()

    def fire(self) -> None:
        """Make the call, unless it was made or cancelled."""
        action, self._action = self._action, None
        if action is not None:
            action()


class Timers:
    """Calls to be made later, all made by the one task that runs `run`.

    A task for each timer would double the number of tasks of a graph; here an unused timer costs two heap operations.
    Cancelling a timer does not postpone the wake-up of the task, so it may wake once for nothing.
    """

    def __init__(self) -> None:
        self.ended = trio.Event()  # `run` has returned
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = 0
        self._closed = False
        self._scope: trio.CancelScope | None = None
        self._wakes_at = math.inf

    def at(self, when: float, action: Callable[[], None]) -> Timer:
        """Call `action` at `when` or as soon as possible afterwards. It must not raise."""
        timer = Timer(self, when, action)
        if when != math.inf:
            self._count += 1
            heapq.heappush(self._heap, (when, self._count, timer))
            if when < self._wakes_at:
                self._wake(when)
        return timer

    def close(self) -> None:
        """Make no further calls and let `run` return."""
        self._closed = True
        self._wake(-math.inf)

    async def run(self) -> None:
        """Make the calls until `close`, shielded from cancellation."""
        while not self._closed:
            self._drop_cancelled()
            self._wakes_at = self._heap[0][0] if self._heap else math.inf
            with trio.CancelScope(deadline=self._wakes_at, shield=True) as self._scope:
                await trio.sleep_forever()
            now = trio.current_time()
            while self._heap and self._heap[0][0] <= now and not self._closed:
                heapq.heappop(self._heap)[2].fire()
        self.ended.set()

    def _drop_cancelled(self) -> None:
        """Remove cancelled timers from the front of the heap."""
        while self._heap and self._heap[0][2].cancelled:
            heapq.heappop(self._heap)

    def _wake(self, when: float) -> None:
        self._wakes_at = when
        if self._scope is not None:
            self._scope.deadline = when
