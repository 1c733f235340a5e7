"""Wake tasks at each change of something: an event that occurs again and again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import TypeVar

import trio

T = TypeVar("T")


class ChangeSignal:
    """Wakes the tasks that wait for the next change.

    A task takes `next` before it reads what may change, and waits for that event afterwards. So it misses no change,
    whether the change occurs while it reads or while it works with what it has read::

        while True:
            change = signal.next
            use(state)
            await change.wait()

    All methods return at once, and must be called in the thread of Trio.
    """

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: trio.Event | None = None  # if a task has taken it

    @property
    def next(self) -> trio.Event:
        """The event of the next change; another one after each change."""
        if self._next is None:
            self._next = trio.Event()
        return self._next

    def announce(self) -> None:
        """Wake the tasks that wait: something has changed."""
        change, self._next = self._next, None
        if change is not None:
            change.set()

    async def values(self, read: Callable[[], T]) -> AsyncGenerator[T, None]:
        """Yield what `read` returns, now and after each change. A slow consumer skips changes, but never the last."""
        while True:
            change = self.next
            yield read()
            await change.wait()
